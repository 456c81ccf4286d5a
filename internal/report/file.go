package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CheckWritable says whether WriteFile will be able to write the file, and
// leaves nothing behind.
func CheckWritable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("cannot write %s: it is a folder, want a file's name", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".stocklock-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// Form is one way to write a report.
type Form func(Report, io.Writer) error

// WriteFile writes the report to a file, whole or not at all.
func (r Report) WriteFile(path string, form Form) error {
	unfinished, err := os.CreateTemp(filepath.Dir(path), ".stocklock-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(unfinished.Name()) // gone already when all went well
	buffer := bufio.NewWriter(unfinished)
	err = errors.Join(form(r, buffer), buffer.Flush())
	err = errors.Join(err, unfinished.Close())
	if err == nil {
		err = os.Chmod(unfinished.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(unfinished.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// JSON writes the report with one cell a line.
func (r Report) JSON(w io.Writer) error {
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

// Read reads what [Report.JSON] wrote.
func Read(path string) (Report, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(content, &r); err != nil {
		return Report{}, fmt.Errorf("%s is no result of loadtest: %w", path, err)
	}
	if r.Environment.Time == "" {
		return Report{}, fmt.Errorf("%s is no result of loadtest: want a file that --json wrote", path)
	}
	return r, nil
}
