package redislock

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFolderStandsAlone copies the folder into an empty module, by the command for that, and builds it and runs
// its tests there. It needs go-redis and the libraries of the tests, and nothing of this project.
func TestFolderStandsAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("tests a copy in a module of its own: not run with -short")
	}
	t.Parallel()
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		if name == "go" {
			// Without inlining the copy compiles in half the time.
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod '-gcflags=elsewhere.example/...=-l -dwarf=false'", "GOWORK=off")
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("./copy.sh", filepath.Join(dir, "lock"), "elsewhere.example/my/lock")
	doc, err := os.ReadFile(filepath.Join(dir, "lock", "doc.go"))
	if err != nil || !strings.HasPrefix(string(doc), "// Copied from stocklock 0.") {
		t.Errorf("doc.go of the copy does not begin with its version: %v\n%.200s", err, doc)
	}
	// The versions are this module's, so that nothing has to be fetched.
	for name, to := range map[string]func(mod string) string{"go.sum": func(s string) string { return s }, "go.mod": func(s string) string {
		return "module elsewhere.example/my\n" + regexp.MustCompile(`(?m)^(module|tool) .*$`).ReplaceAllString(s, "")
	}} {
		content, err := os.ReadFile(filepath.Join("..", "..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(to(string(content))), 0o644)
		}
		must(t, err)
	}
	run("go", "test", "-vet=off", "-tags", "soak", "-run", "TestReentry|TestDo|TestABurstOfRenewals|Example", "./...") // check.sh copies runs all
	for dep := range strings.FieldsSeq(run("go", "list", "-deps", "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./lock/...")) {
		if strings.HasPrefix(dep, "stocklock") {
			t.Errorf("the copied lock needs %s", dep)
		}
	}
	if lines := strings.Count(run("find", dir, "-name", "*_test.go", "-exec", "cat", "{}", "+"), "\n"); lines > 5000 {
		t.Errorf("a copy has %d lines of tests, want 5,000 at most: leave out what only this repository needs", lines)
	}
}

// TestACopyNeedsAModuleThatIsNewEnough: one with an older go-redis would send requests again.
func TestACopyNeedsAModuleThatIsNewEnough(t *testing.T) {
	t.Parallel()
	for mod, want := range map[string]string{
		"module m\n\ngo 1.26\n\nrequire github.com/redis/go-redis/v9 v9.18.0\n":                      "go-redis/v9 v9.18.0",
		"module m\n\ngo 1.26.1\n\nrequire (\n\tgithub.com/redis/go-redis/v9 v9.7.0 // indirect\n)\n": "go-redis/v9 v9.7.0",
		"module m\n\ngo 1.25.4\n": "go 1.25.4",
		"module m\n\ngo 1.26\n\nrequire github.com/redis/go-redis/v9 v9.19.0\n":  "",
		"module m\n\ngo 1.27\n\nrequire github.com/redis/go-redis/v9 v9.101.0\n": "",
		"module m\n": "",
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644))
		out, err := exec.Command("./copy.sh", filepath.Join(dir, "internal", "lock"), "m/internal/lock").CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("into %q: %v, %s; want %q", mod, err, out, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "internal", "lock", "doc.go")); (err == nil) != (want == "") {
			t.Errorf("into %q: the copy was made: %v", mod, err == nil)
		}
	}
}

// TestTheLockIsSmall: a reader can follow what is copied in an hour. Comments, blank lines, tests and
// Inspect are not counted.
func TestTheLockIsSmall(t *testing.T) {
	for pattern, c := range map[string]struct {
		count func(source []byte) int
		most  int
	}{
		"*.go":  {goLines, 1550},
		"*.lua": {luaLines, 220},
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		sum := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "inspect.") {
				continue
			}
			source, err := os.ReadFile(file)
			must(t, err)
			sum += c.count(source)
		}
		if t.Logf("%s: %d lines", pattern, sum); sum > c.most {
			t.Errorf("%s: %d lines, want %d at most: see what can go", pattern, sum, c.most)
		}
	}
}

// goLines are those with a token on them.
func goLines(source []byte) int {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", -1, len(source)), source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		for i := range 1 + strings.Count(text, "\n") {
			lines[set.Position(pos).Line+i] = true
		}
	}
}

// luaLines are those with more than a comment on them. The scripts have no long strings or comments.
func luaLines(source []byte) (n int) {
	for line := range strings.Lines(string(source)) {
		code, _, _ := strings.Cut(line, "--")
		if strings.TrimSpace(code) != "" {
			n++
		}
	}
	return n
}
