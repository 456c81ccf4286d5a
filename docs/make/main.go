// Command make writes the generated parts of the pages of the strategies and the
// scenarios, as `make docs` does:
//
//	go run ./docs/make [-show]
//
// A page's explanation is written by hand, in the page itself, and left alone. The
// block of fields comes from the code. With -show each page's command is run on
// bin/loadtest, and what it prints is put into the page.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	show := flag.Bool("show", false, "run each page's command again and keep what it prints; takes minutes")
	flag.Parse()
	if err := write("docs", *show); err != nil {
		fmt.Fprintln(os.Stderr, "docs/make:", err)
		os.Exit(1)
	}
}

// write brings all pages under a folder up to date.
func write(folder string, show bool) error {
	for _, p := range pages() {
		file := folder + "/" + p.path
		old, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		printed := shownIn(string(old))
		if p.command != "" && (show || printed == "") {
			fmt.Fprintln(os.Stderr, p.command)
			if printed, err = runShown(p.command); err != nil {
				return err
			}
		}
		if err := os.WriteFile(file, []byte(p.render(string(old), printed)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runShown runs a command line that begins with a program of bin/, and returns what
// it prints to people.
func runShown(command string) (string, error) {
	words := strings.Fields(command)
	cmd := exec.Command("bin/"+words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n"), nil
}
