package program

import (
	"encoding/json"
	"fmt"

	"stocklock/internal/strategy"
)

type strategiesCommand struct {
	JSON bool `name:"json" help:"As a list in JSON, with properties: the lab asks so."`
}

func (c *strategiesCommand) Run(to *streams) error {
	all := strategy.Describe(offered)
	if c.JSON {
		out := json.NewEncoder(to.out)
		out.SetIndent("", "  ")
		return out.Encode(all)
	}
	for _, s := range all {
		if _, err := fmt.Fprintf(to.out, "%-20s %s\n", s.Name, s.Doc); err != nil {
			return err
		}
	}
	return nil
}
