package main

import (
	"encoding/json"
	"fmt"

	"stocklock/internal/strategy"
)

type strategiesCommand struct {
	JSON bool `name:"json" help:"As a list in JSON, with properties: the lab asks so."`
}

func (c *strategiesCommand) Run(s *streams) error {
	var all []strategy.Description
	for _, of := range offered {
		all = append(all, of.Describe())
	}
	if c.JSON {
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		return out.Encode(all)
	}
	for _, d := range all {
		if _, err := fmt.Fprintf(s.out, "%-20s %s\n", d.Name, d.Doc); err != nil {
			return err
		}
	}
	return nil
}
