package main

import (
	"fmt"
	"regexp"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/trial"
)

// commandLine is how the program was called, quoted for a shell, without the passwords in
// addresses.
func commandLine(args []string) string {
	words := []string{"loadtest"}
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
	if flag == "--shop" {
		return matrix.Redacted(value)
	}
	return "***"
}

var plainWord = regexp.MustCompile(`^[\w./:=,@%+*-]+$`)

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// replay is the command that runs a cell again, with a shop program where one was given. Addresses
// with passwords come from the environment.
func replay(c trial.Result, p matrix.Plan, shop string) string {
	words := []string{"loadtest run", "--strategies", c.Strategy, "--scenarios", c.Scenario, "--seed", fmt.Sprint(c.Seed),
		"--stock", fmt.Sprint(p.Stock), "--requests", fmt.Sprint(p.Requests),
		"--workers", fmt.Sprint(p.Workers), "--lease", p.Lease.String(), "--wait", p.Wait.String(),
		"--retry", p.Retry.String(), "--work", p.Work.String()}
	for _, shop := range p.ShopURLs {
		words = append(words, "--shop", matrix.Redacted(shop))
	}
	if len(p.ShopURLs) == 0 {
		words = append(words, "--shops", fmt.Sprint(p.Shops))
	}
	if shop != "" {
		words = append(words, "--shop-binary", quoted(shop))
	}
	if p.Binlog {
		words = append(words, "--binlog")
	}
	if p.MySQL != "" {
		words = append(words, `--mysql "$LOADTEST_MYSQL"`)
	}
	if p.Redis != "" {
		words = append(words, `--redis "$LOADTEST_REDIS"`)
	}
	if rate := p.Shape.String(); rate != "" {
		words = append(words, "--rate", rate)
	}
	return strings.Join(words, " ")
}
