package exercise

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

// answers are the folders of solutions and wrong answers, by their names.
func answers(t *testing.T, e Exercise) (right, wrong []string) {
	t.Helper()
	folders, err := os.ReadDir(e.name())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		switch kind, _, _ := strings.Cut(f.Name(), "-"); kind {
		case "right":
			right = append(right, f.Name())
		case "wrong":
			wrong = append(wrong, f.Name())
		case "start":
		default:
			t.Errorf("%s/%s: want start, right-... or wrong-CAUSE-...", e.name(), f.Name())
		}
	}
	return right, wrong
}

func TestEveryExerciseHasAnswers(t *testing.T) {
	for _, e := range All() {
		right, wrong := answers(t, e)
		if len(right) == 0 || len(wrong) < 3 {
			t.Errorf("lesson %d has %d solutions and %d wrong answers: want at least 1 and 3", e.Lesson, len(right), len(wrong))
		}
	}
}

// TestAnswers holds each solution and each wrong answer to its name. One shop has them all. They are
// checked one after the other: beside each other they would wait for the same lanes.
func TestAnswers(t *testing.T) {
	testserver.NeedsServers(t)
	if raceDetector {
		t.Skip("not under the race detector, with which the explorations take minutes: make test runs TestAnswers once more without it")
	}
	var all []Answer
	for _, e := range All() {
		right, wrong := answers(t, e)
		for _, name := range append(right, wrong...) {
			all = append(all, Answer{e, path.Join("internal/lab/exercise", e.name(), name), fmt.Sprintf("mine-%d", len(all))})
		}
	}
	c := open(t, all...)
	for _, a := range all {
		checkAnswer(t, c, a)
	}
}

func checkAnswer(t *testing.T, c *Checker, a Answer) {
	name := path.Base(a.Folder)
	t.Run(a.Exercise.name()+"/"+name, func(t *testing.T) {
		begun := time.Now()
		v, err := c.Check(t.Context(), a, func(step string) { t.Log(step) })
		switch {
		case err != nil:
			t.Fatal(err)
		case strings.HasPrefix(name, "right-") && !v.Solved:
			t.Errorf("failed: %s: %s", v.Cause, v.Said)
		case strings.HasPrefix(name, "wrong-") && (v.Solved || !strings.HasPrefix(name, "wrong-"+string(v.Cause)+"-")):
			t.Errorf("solved %t, cause %q: %s", v.Solved, v.Cause, v.Said)
		}
		if v.Record != nil {
			t.Logf("%s: loadtest step mine %s", v.Said, v.Record.Schedule)
		} else if !v.Solved {
			t.Log(v.Said)
		}
		t.Logf("checked in %s", time.Since(begun).Round(time.Second))
	})
}

// open builds a shop with these answers, and a checker of it that ends with the test.
func open(t *testing.T, all ...Answer) *Checker {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	program, begun := filepath.Join(t.TempDir(), "shop"), time.Now()
	if err := Build(t.Context(), root, program, all...); err != nil {
		t.Fatal(err)
	}
	t.Logf("a shop with %d answers built in %s", len(all), time.Since(begun).Round(time.Second))
	c, err := Open(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestBounds: code that crashes, waits for itself, or sends too much is found out and named.
func TestBounds(t *testing.T) {
	testserver.NeedsServers(t)
	e, err := Of(1)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		cause Cause
		said  string
		sell  string
	}{
		{"nothing is sold", NeverSold, "answered with sold_out", `return stock.Order{}, stock.ErrSoldOut`},
		{"a panic", Crashed, "panic: no unit is left",
			`if item, _ := store.Read(ctx, wanted.ItemID); item.Stock == 1 { panic("no unit is left") }; return store.Decrement(ctx, wanted)`},
		{"300 requests", TooManyRequests, "more than 200 requests",
			`for range 300 { store.Read(ctx, wanted.ItemID) }; return store.Decrement(ctx, wanted)`},
		{"silence", TooSilent, "nothing was heard of the shops for 10s", `select {}`},
		{"a loop without an end", TooManyRequests, "the sales do not end", `for { store.Read(ctx, wanted.ItemID) }`},
	}
	var all []Answer
	for i, tt := range tests {
		all = append(all, write(t, e, fmt.Sprintf("mine-%d", i), tt.sell))
	}
	c := open(t, all...)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			v, err := c.Check(t.Context(), all[i], func(step string) { t.Log(step) })
			if err != nil || v.Solved || v.Cause != tt.cause || !strings.Contains(v.Said, tt.said) {
				t.Errorf("Check = %+v, %v, want %s: %s", v, err, tt.cause, tt.said)
			}
			t.Logf("%s after %s", v.Said, time.Since(begun).Round(time.Second))
		})
	}
}

func TestBuildSaysWhatTheCompilerSays(t *testing.T) {
	testserver.NeedsServers(t)
	e, err := Of(1)
	if err != nil {
		t.Fatal(err)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	err = Build(t.Context(), root, filepath.Join(t.TempDir(), "shop"), write(t, e, "mine", "return nil"))
	if !errors.As(err, new(errBuild)) || !strings.Contains(err.Error(), "mine.go:") {
		t.Errorf("Build = %v, want what the compiler says of mine.go", err)
	}
}

// write puts an answer into the checkout for as long as the test runs: sell with this body.
func write(t *testing.T, e Exercise, name, sell string) Answer {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "exercises"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(filepath.Join(root, "exercises"), "bound")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	begun, err := os.ReadFile(e.name() + "/start/mine.go")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?s)(\(stock\.Order, error\)) \{.*`).ReplaceAllString(string(begun), "$1 {\n"+sell+"\n}\n")
	if err := os.WriteFile(filepath.Join(folder, "mine.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return Answer{e, path.Join("exercises", filepath.Base(folder)), name}
}

func TestWriteLeavesWhatIsThere(t *testing.T) {
	root := t.TempDir()
	for _, e := range All() {
		if written, err := e.Write(root); err != nil || !written {
			t.Fatalf("Write = %t, %v", written, err)
		}
		file := filepath.Join(root, e.File())
		if err := os.WriteFile(file, []byte("package mine // mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		written, err := e.Write(root)
		content, _ := os.ReadFile(file)
		if err != nil || written || string(content) != "package mine // mine" {
			t.Errorf("lesson %d: a second Write = %t, %v, and left %q", e.Lesson, written, err, content)
		}
	}
}
