package redislock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// When this variable is set to anything, all tests are run in the copy, and not only a few.
const wholeCopyEnv = "REDISLOCK_COPY"

// TestFolderStandsAlone copies the folder into an empty module, by the command for that, and
// builds it and runs its tests there.
func TestFolderStandsAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("tests a copy in a module of its own: not run with -short")
	}
	t.Parallel()
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	dir := t.TempDir()
	if out, err := exec.Command("./copy.sh", filepath.Join(dir, "lock"), "elsewhere/lock").CombinedOutput(); err != nil {
		t.Fatalf("copy.sh: %v\n%s", err, out)
	}
	if doc, err := os.ReadFile(filepath.Join(dir, "lock", "doc.go")); err != nil || !strings.HasPrefix(string(doc), "// Copied from stocklock 0.") {
		t.Errorf("doc.go of the copy does not begin with its version: %v\n%.200s", err, doc)
	}
	// The versions are this module's; what it does not need is left out by hand, so that
	// nothing has to be fetched.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(mod)) {
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "module "):
			line = "module elsewhere\n"
		case len(fields) > 1 && strings.HasPrefix(line, "tool "):
			continue
		}
		kept = append(kept, line)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"go.mod": []byte(strings.Join(kept, "")), "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := [][]string{{"test", "-vet=off", "-run", "TestReentry|TestDo|TestABurstOfRenewals|Example", "./..."}}
	if os.Getenv(wholeCopyEnv) != "" {
		commands = [][]string{{"vet", "./..."}, {"test", "-vet=off", "-skip", t.Name(), "./..."}} // make lint vets the folder itself
	}
	for _, args := range commands {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s in a copy of the folder: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// go-redis and the libraries of the tests, and nothing of this project.
	out, err := command(dir, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./lock/...")
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(out) {
		if strings.HasPrefix(dep, "stocklock") {
			t.Errorf("the copied lock needs %s", dep)
		}
	}
}

func command(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	return string(out), err
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
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("./copy.sh", filepath.Join(dir, "internal", "lock"), "m/internal/lock").CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("into %q: %v, %s; want %q", mod, err, out, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "internal", "lock", "doc.go")); (err == nil) != (want == "") {
			t.Errorf("into %q: the copy was made: %v", mod, err == nil)
		}
	}
}
