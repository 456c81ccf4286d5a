package course

import (
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/scenario"
)

// Action is what the lab's page starts in place of a command.
type Action struct {
	Cells   []Cell `json:"cells,omitempty"` // of run
	Shops   int    `json:"shops,omitempty"` // 0 for as many as the page has
	Explain bool   `json:"explain,omitempty"`
	// Of step and explore.
	Strategies []string `json:"strategies,omitempty"`
	Schedule   string   `json:"schedule,omitempty"`
	Customers  int      `json:"customers,omitempty"` // 2 or 3
	Explore    bool     `json:"explore,omitempty"`
	Events     []string `json:"events,omitempty"` // kinds that may happen; none for no event
}

// Cell is a strategy under a scenario.
type Cell struct {
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
}

// switches are the flags that have no value.
var switches = []string{"--draw", "--check"}

// Action returns what the page starts for this command, nil for a command that it has no place for.
// Leases, and how a result is drawn, are the page's own.
func (c Command) Action() *Action {
	var words []string
	drawn := false
	flags := map[string]string{}
	args := c.Args()
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains(switches, args[i]):
			drawn = drawn || args[i] == "--draw"
		case strings.HasPrefix(args[i], "--") && i+1 < len(args):
			flags[args[i]] = args[i+1]
			i++
		default:
			words = append(words, args[i])
		}
	}
	if len(words) == 0 {
		return nil
	}
	a := &Action{}
	switch words[0] {
	case "run":
		for _, word := range words[1:] {
			for _, of := range cells.Parse(word) {
				for _, s := range of.Strategies {
					for _, under := range namesOf(of.Scenarios) {
						a.Cells = append(a.Cells, Cell{s, under})
					}
				}
			}
		}
		a.Shops, _ = strconv.Atoi(flags["--shops"])
		a.Explain = drawn && len(a.Cells) == 1
	case "step":
		a.Strategies, a.Schedule, a.Customers = words[1:2], strings.Join(words[2:], " "), 2
		if strings.Contains(a.Schedule, "C.") {
			a.Customers = 3
		}
	case "explore":
		a.Explore, a.Strategies, a.Customers = true, words[1:], 2
		for e := range strings.SplitSeq(flags["--events"], ",") {
			if e != "" && e != "none" {
				a.Events = append(a.Events, e)
			}
		}
	default:
		return nil
	}
	return a
}

// namesOf are scenarios and groups of them by the names of the scenarios.
func namesOf(asked []string) (all []string) {
	for _, name := range asked {
		group := scenario.Group(name)
		if len(group) == 0 {
			all = append(all, name)
		}
		for _, s := range group {
			all = append(all, s.Name)
		}
	}
	return all
}
