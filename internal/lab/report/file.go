package report

import (
	"encoding/json"
	"fmt"
	"io"

	"stocklock/internal/lab/wholefile"
)

// Form is one way to write a report.
type Form func(Report, io.Writer) error

// WriteFile writes the report to a file, whole or not at all.
func (r Report) WriteFile(path string, form Form) error {
	return wholefile.Write(path, func(w io.Writer) error { return form(r, w) })
}

// JSON writes the report with one cell a line.
func (r Report) JSON(w io.Writer) error {
	r.Version = Version
	cells := r.Cells
	r.Cells = nil
	head, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	const empty = "\"cells\": null\n}"
	if _, err := fmt.Fprintf(w, "%s\"cells\": [", head[:len(head)-len(empty)]); err != nil {
		return err
	}
	separator := "\n"
	for _, c := range cells {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, line); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}
