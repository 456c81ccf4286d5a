package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

// commandLine is how the program was called, quoted for a shell, without the passwords in
// addresses.
func commandLine(args []string) string {
	words := []string{program()}
	of := "" // the flag whose value comes next
	for _, a := range args {
		name, value, joined := strings.Cut(a, "=")
		switch {
		case of != "":
			a, of = withoutSecret(of, a), ""
		case name == "--mysql" || name == "--redis" || name == "--shop":
			if of = name; joined {
				a, of = name+"="+withoutSecret(name, value), ""
			}
		}
		words = append(words, quoted(a))
	}
	return strings.Join(words, " ")
}

func withoutSecret(flag, value string) string {
	if flag != "--shop" {
		return "***"
	}
	address, file, traced := strings.Cut(value, "=")
	if traced {
		file = "=" + file
	}
	return matrix.Redacted(address) + file
}

// program is how its user calls this program: as it was called, or as LOADTEST_AS says it, in a
// container.
func program() string { return cmp.Or(os.Getenv("LOADTEST_AS"), os.Args[0]) }

var plainWord = regexp.MustCompile(`^[\w./:=,@%+*-]+$`)

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// again is the command that runs a cell again on the same programs, where some were given.
func again(c trial.Result, shop, redis string) string {
	command := fmt.Sprintf("%s run %s --seed %d", program(), c.Name(), c.Seed)
	return command + flagOf("--shop-binary", shop) + flagOf("--redis-server", redis)
}

// flagOf is a flag as a shell reads it, behind a space; nothing without a value.
func flagOf(name, value string) string {
	if value == "" {
		return ""
	}
	return " " + name + " " + quoted(value)
}

// replay is the command that runs a cell of the plan again, with a shop program where one was given. Addresses
// that came from the environment stay there, and those with passwords are to be put there.
func replay(c trial.Result, p matrix.Plan, shop string) string {
	command := again(c, shop, p.RedisServer) + ofServers(c, p)
	if c.Group != trial.OneServer {
		return command + " --draw"
	}
	return command + settingsOf(c, p)
}

// explaining is the command that runs a cell of the plan again and draws it. What the cell has by itself is left out.
func explaining(c trial.Result, p matrix.Plan, shop string) string {
	command := program() + " run " + c.Name()
	if c.Seed != 1 {
		command = fmt.Sprintf("%s --seed %d", command, c.Seed)
	}
	command += flagOf("--shop-binary", shop) + flagOf("--redis-server", p.RedisServer) + ofServers(c, p)
	if c.Group != trial.OneServer {
		return command + " --draw"
	}
	alone := matrix.Plan{Pairs: slices.DeleteFunc(slices.Clone(p.Pairs), func(of matrix.Pair) bool {
		return of.Strategy.Name != c.Strategy || of.Scenario.Name != c.Scenario
	})}
	if set := settingsOf(c, p); set != settingsOf(c, alone.OneServer()) {
		command += set
	}
	return command + " --draw"
}

// fromFile is the command that explains a cell of a saved result.
func fromFile(c trial.Result, file string) string {
	return program() + " run " + c.Name() + " --draw --from " + quoted(file)
}

// ofServers are the settings of the MySQL that a cell has.
func ofServers(c trial.Result, p matrix.Plan) (flags string) {
	if c.OnTopology() { // whose servers have settings of their own
		return ""
	}
	for _, setting := range p.MySQLSet {
		flags += flagOf("--mysql-set", setting)
	}
	return flags
}

// settingsOf are the flags with which a cell on one server was run.
func settingsOf(c trial.Result, p matrix.Plan) string {
	sc, _ := scenario.ByName(c.Scenario)
	p = *p.Of(sc)
	words := []string{"", "--stock", fmt.Sprint(p.Stock), "--requests", fmt.Sprint(p.Requests),
		"--workers", fmt.Sprint(p.Workers), "--lease", p.Lease.String(), "--wait", p.Wait.String(),
		"--retry", p.Retry.String(), "--work", p.Work.String()}
	switch {
	case len(p.Given) == 0:
		words = append(words, "--shops", fmt.Sprint(p.Shops))
	case os.Getenv("LOADTEST_SHOP") == "":
		for _, shop := range p.Given {
			value := matrix.Redacted(shop.URL)
			if shop.Trace != "" {
				value += "=" + shop.Trace
			}
			words = append(words, "--shop", quoted(value))
		}
	}
	if p.MySQL != "" && p.MySQL != os.Getenv("LOADTEST_MYSQL") {
		words = append(words, `--mysql "$LOADTEST_MYSQL"`)
	}
	if p.Redis != "" && p.Redis != os.Getenv("LOADTEST_REDIS") {
		words = append(words, `--redis "$LOADTEST_REDIS"`)
	}
	return strings.Join(words, " ") + flagOf("--rate", p.Shape.String())
}
