package main

import (
	"stocklock/internal/report"
)

// outputs are the files that results are written to, besides the terminal.
type outputs struct {
	JSON string `name:"json" placeholder:"FILE" help:"Also write the results here, as JSON, for loadtest report."`
}

// check finds what could not be written, before anything is run.
func (o outputs) check() error {
	for _, path := range []string{o.JSON} {
		if path == "" {
			continue
		}
		if err := report.CheckWritable(path); err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

func (o outputs) write(r report.Report) error {
	if o.JSON != "" {
		return r.WriteJSON(o.JSON)
	}
	return nil
}
