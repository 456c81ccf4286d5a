package main

import (
	"encoding/json"
	"fmt"
	"io"

	"stocklock/internal/strategy"
)

// output is where answers go; the log goes to standard error.
type output struct{ io.Writer }

type strategiesCommand struct {
	JSON bool `name:"json" help:"As a list in JSON, with properties: the lab asks so."`
}

func (c *strategiesCommand) Run(stdout output) error {
	var all []strategy.Description
	for _, s := range offered {
		all = append(all, s.Describe())
	}
	if c.JSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		return out.Encode(all)
	}
	for _, s := range all {
		if _, err := fmt.Fprintf(stdout, "%-20s %s\n", s.Name, s.Doc); err != nil {
			return err
		}
	}
	return nil
}
