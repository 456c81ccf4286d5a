package main

import (
	"slices"
	"strings"
)

// replaced are the commands and the flags of commands that there were, and what to type in their place.
var replaced = []struct{ commands, flag, by string }{
	{"explain", "", "loadtest run STRATEGY:SCENARIO --draw"},
	{"judge", "", "loadtest explore STRATEGY --judge"},
	{"crashes", "", "loadtest soak [STRATEGY] --sales UNITS --kill-every DURATION"},
	{"shell", "", "loadtest exercise --shell"},
	{"scale", "", "bin/bench scale, after scripts/lab-go.sh -C bench build -o ../bin/ ."},
	{"run", "cells", "STRATEGY:SCENARIO, once for each cell"},
	{"run", "strategies", "STRATEGY, once for each, or STRATEGY,STRATEGY:SCENARIO"},
	{"run", "scenarios", "SCENARIO, once for each, or STRATEGY:SCENARIO,SCENARIO"},
	{"run", "baskets", "baskets"},
	{"run", "topology", "topologies, or the name of one"},
	{"run", "results", "--out FILE.gob"},
	{"run", "binlog", "--mysql-set binlog"},
	{"run", "trace", "without it: it always records"},
	{"run report step explore try", "json", "--out FILE.json, or --out -"},
	{"run report try", "html", "--out FILE.html"},
	{"run report", "csv", "--out FILE.csv"},
	{"run report", "markdown", "--out FILE.md"},
	{"demo", "out", "DIR"},
	{"serve", "out", "--demo DIR"},
	{"serve", "cells", "STRATEGY:SCENARIO, once for each cell"},
	{"serve", "host", "--url https://HOST"},
	{"serve", "token", "with LAB_TOKEN in the environment"},
	{"step explore", "one-shop", "STRATEGY --as one-shop"},
	{"step explore", "baskets", "STRATEGY --as baskets"},
	{"step explore", "reservations", "STRATEGY --as reservations"},
	{"soak", "minutes", "--for 10m"},
	{"soak", "strategies", "STRATEGY, once for each"},
}

// refuseReplaced refuses a command or a flag that there was.
func refuseReplaced(args []string) error {
	for i, arg := range args {
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "no-"), "=")
		for _, r := range replaced {
			switch {
			case i == 0 && r.flag == "" && r.commands == arg:
				return usage("there is no %s any more: want %s", arg, r.by)
			case i > 0 && isFlag && r.flag == name && slices.Contains(strings.Fields(r.commands), args[0]):
				return usage("there is no --%s any more: want %s %s %s", name, program(), args[0], r.by)
			}
		}
	}
	return nil
}
