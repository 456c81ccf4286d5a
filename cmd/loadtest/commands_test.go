package main

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/schedule"
)

var (
	shownCommand   = regexp.MustCompile("(?m)(?:`|\\$ |\\$\\$ |bin/|^//\t|^>? +|^\t|exec |next: )(?:bin/)?loadtest ((?:[^`\n#|>;)\\\\]|\\\\\n)+)")
	inContainer    = regexp.MustCompile(`(?m)docker compose (?:--profile \S+ )*run (?:--?[a-z]+(?: LOADTEST_SHOP=| typing)? )*(?:lab|loadtest) ([^\n#` + "`" + `]+)`)
	composeCommand = regexp.MustCompile(`command: (\["(?:run|serve)".*\])`)
	continued      = regexp.MustCompile(`\\\n *`)
	anotherProgram = regexp.MustCompile(`--(?:redis-server|shop-binary) \S+`) // it is elsewhere on each machine
	furtherFlags   = regexp.MustCompile(`"\$@"|\$\((?:ARGS|SURPRISED)\)|\$binlog`)
	asked          = regexp.MustCompile(`"?\$+(?:\([^)]*\)|[a-z]+|@)"?`) // what a shell puts in
	shellWord      = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
	placeholder    = regexp.MustCompile(`[A-Z%单策]|redsync|incr-expire|^1$`)
)

// shown is a command of this program in a file of the repository.
type shown struct {
	file string
	args []string
}

// shownCommands are those of pages, lessons, scripts, makefiles and workflows, of comments and of the program's own help.
func shownCommands(t *testing.T) (all []shown) {
	t.Helper()
	known := strings.Fields("demo run report serve step explore try soak exercise list explain judge crashes shell")
	add := func(file, command string) {
		command, _, _ = strings.Cut(continued.ReplaceAllString(command, " "), "  ") // what it does
		args := shellWord.FindAllString(anotherProgram.ReplaceAllString(command, ""), -1)
		for i := range args {
			args[i] = strings.Trim(args[i], `'"`)
		}
		if len(args) > 1 && slices.Contains(known, args[0]) { // else the name of a command, or prose
			all = append(all, shown{file, args})
		}
	}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".venv", "bin", "out", "testdata", "node_modules", "target", "exercises"}, name):
			return filepath.SkipDir
		case d.IsDir() || name == "CHANGELOG.md" || strings.HasSuffix(name, "_test.go"),
			!slices.Contains([]string{".md", ".tmpl", ".sh", ".yml", ".go", ""}, filepath.Ext(name)):
			return nil
		}
		text := asked.ReplaceAllString(furtherFlags.ReplaceAllString(readPage(t, path), ""), "1")
		for _, of := range []*regexp.Regexp{shownCommand, inContainer} {
			for _, m := range of.FindAllStringSubmatch(text, -1) {
				add(path, m[1])
			}
		}
		for _, m := range composeCommand.FindAllStringSubmatch(text, -1) {
			var args []string
			if err := json.Unmarshal([]byte(m[1]), &args); err != nil {
				return err
			}
			all = append(all, shown{path, args})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheProgramReadsTheCommandsThatAreShown: each command is read by the program as it stands, and its words are cells
// of the shop. Each schedule has a strategy; docs/make and package explore play those of the chapters.
func TestTheProgramReadsTheCommandsThatAreShown(t *testing.T) {
	shop := openClassroom(t).shop
	all := shownCommands(t)
	files := map[string]int{}
	for _, of := range all {
		files[filepath.Base(of.file)]++
		var c commands
		_, _, err := c.parse(t.Context(), streams{out: io.Discard, err: io.Discard, args: of.args})
		if words := slices.Concat(c.Run.Words, c.Serve.Words); err == nil && !slices.ContainsFunc(words, placeholder.MatchString) {
			_, err = cells.Pairs(words, shop)
		}
		if err == nil && c.Step.Strategy != "" && !placeholder.MatchString(c.Step.Strategy) {
			if _, err = shop.Any(c.Step.Strategy); err == nil {
				_, err = schedule.Parse(strings.Join(c.Step.Schedule, " "))
			}
		}
		if err != nil {
			t.Errorf("%s: loadtest %s: %v", of.file, strings.Join(of.args, " "), err)
		}
	}
	for _, file := range []string{"Makefile", "docker-compose.yml", "check.sh", "profile.sh", "screenshot.sh", "README.md", "CONTRIBUTING.md", "using.zh-CN.md", "1-lost-update.md", "cli.go", "run.go", "page.md.tmpl"} {
		if files[file] == 0 {
			t.Errorf("no command of %s was found", file)
		}
	}
	if len(all) < 300 {
		t.Errorf("found %d commands", len(all))
	}
}

// explainedCells are those of the commands of docs/mistakes.
func explainedCells(t *testing.T) (all []string) {
	t.Helper()
	for _, of := range shownCommands(t) {
		if strings.Contains(of.file, "docs/mistakes/") && of.args[0] == "run" && slices.Contains(of.args, "--draw") && strings.Contains(of.args[1], ":") {
			all = append(all, of.args[1])
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 30 {
		t.Errorf("the chapters explain %v", all)
	}
	return all
}

// before has the flags of each command before there were ten.
const before = `
demo: out seed shop-binary redis-server
run: strategies scenarios cells runs parallel shops stock requests workers rate seed lease wait retry work shop-binary redis-server mysql redis shop binlog mysql-set trace no-trace json html csv markdown fail-if results baskets topology expect-only draw
explain: shops stock requests workers rate seed lease wait retry work shop-binary redis-server mysql redis shop binlog mysql-set trace from
report: json html csv markdown fail-if
serve: addr host token url classroom keep record cells demo out tried shop-binary redis-server shops
soak: minutes seed strategies faults shops rate recover-within shop-binary redis-server
crashes: strategy sales every shops workers binlog shop-binary redis-server
step: customers one-shop baskets reservations json transcript draw no-times shop-binary redis-server mysql-set lease
explore: events customers one-shop baskets reservations switches json shop-binary redis-server mysql-set lease
try: init for only require fast step spare seed allow-host json html
judge: baskets scenarios no-scenarios json shop-binary redis-server mysql-set lease
exercise: hint from check redis-server
shell: redis-server
scale: repeat
list: shop-binary
`

// TestWhatThereWasIsRefused: each command and each flag that there was is still one, or is refused with what to type.
func TestWhatThereWasIsRefused(t *testing.T) {
	refused := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(before)) {
		command, flags, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for _, flag := range strings.Fields(flags) {
			args := []string{command, "--" + flag}
			_, _, err := new(commands).parse(t.Context(), streams{out: io.Discard, err: io.Discard, args: args})
			if err == nil || !strings.Contains(err.Error(), "unknown") && !strings.Contains(err.Error(), "there is no") {
				continue // it is a flag, which may want a value
			}
			var out, errs bytes.Buffer
			wanted := " any more: want loadtest "
			if command == "scale" {
				wanted = " any more: want bin/bench scale, "
			}
			if code := run(t.Context(), append(args, "x"), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), wanted) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("%v: exit code %d, %q", args, code, errs.String())
			}
			refused[errs.String()] = true
		}
	}
	want := 0
	for _, r := range replaced {
		want += len(strings.Fields(r.commands))
	}
	if len(refused) != want {
		t.Errorf("%d different refusals, and the table has %d: want each of them seen", len(refused), want)
	}
}

// TestThereAreFewFlags counts those of all commands.
func TestThereAreFewFlags(t *testing.T) {
	count := 0
	for command := range strings.FieldsSeq("demo run report serve step explore try soak exercise list") {
		var help bytes.Buffer
		if code := run(t.Context(), []string{command, "--help"}, &help, io.Discard); code != exitExpected {
			t.Errorf("%s --help: exit code %d", command, code)
		}
		count += len(regexp.MustCompile(`(?m)^  (?:-.,|   ) --`).FindAllString(help.String(), -1)) - 3 // --help, --version and --lang, which all have
	}
	if count > 90 || count < 60 {
		t.Errorf("there are %d flags: want at most 90", count)
	}
}
