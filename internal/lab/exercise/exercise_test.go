package exercise

import (
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

// edited is an answer that lessonN/answers.diff makes of the start, or of an answer above it.
type edited struct{ name, code string }

// answers reads lessonN/answers.diff, and applies each edit in it. An edit says in a line what the
// answer does. Then come the answer that it edits, its own name, right-NAME or wrong-CAUSE-NAME, and
// the hunks. A hunk is found by its lines alone.
func answers(t *testing.T, e Exercise) (all []edited) {
	t.Helper()
	content, err := os.ReadFile(e.name() + "/answers.diff")
	if err != nil {
		t.Fatal(err)
	}
	begun, err := os.ReadFile(e.name() + "/start/mine.go")
	if err != nil {
		t.Fatal(err)
	}
	_, start, _ := strings.Cut(string(begun), "package mine\n")
	bodies := map[string]string{"start": start}
	for edit := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n\n") {
		header := regexp.MustCompile(`^# (.+)\n--- (.+)\n\+\+\+ ((?:right|wrong-.+)-.+)(\n@@\n|$)`).FindStringSubmatch(edit)
		if header == nil {
			t.Fatalf("%s/answers.diff: want # WHAT IT DOES, --- ANSWER, +++ right-NAME or wrong-CAUSE-NAME and the hunks, not:\n%s", e.name(), edit)
		}
		does, of, name := header[1], header[2], header[3]
		code, known := bodies[of]
		if !known {
			t.Fatalf("%s/%s edits %s, which is not above it", e.name(), name, of)
		}
		for hunk := range strings.SplitSeq(edit[len(header[0]):], "\n@@\n") {
			if hunk == "" {
				break // the answer is the one that it edits
			}
			if code, err = apply(hunk, code); err != nil {
				t.Fatalf("%s/%s, edit of %s: %v", e.name(), name, of, err)
			}
		}
		bodies[name] = code
		all = append(all, edited{name, "// Package mine " + does + ".\npackage mine\n" + code})
	}
	return all
}

// apply applies a hunk of a diff, whose old lines code must have once.
func apply(hunk, code string) (string, error) {
	before, after := "\n", "\n"
	for line := range strings.Lines(hunk) {
		text := strings.TrimSuffix(line[1:], "\n") + "\n"
		switch line[0] {
		case ' ':
			before, after = before+text, after+text
		case '-':
			before += text
		case '+':
			after += text
		default:
			return "", fmt.Errorf("a line of a hunk begins with %q, want a space, - or +: %s", line[0], line)
		}
	}
	first := strings.Index(code, before)
	if first < 0 {
		return "", fmt.Errorf("these lines are not there:%s", before)
	}
	if strings.Contains(code[first+1:], before) {
		return "", fmt.Errorf("these lines are there more than once:%s", before)
	}
	return code[:first] + after + code[first+len(before):], nil
}

func TestApply(t *testing.T) {
	const code = "\n\ta\n\tb\n\ta\n\ta\n"
	for _, tt := range []struct{ hunk, want, wrong string }{
		{hunk: "-\tb\n+\tc", want: "\n\ta\n\tc\n\ta\n\ta\n"},
		{hunk: " \tb\n+\tc\n+", want: "\n\ta\n\tb\n\tc\n\n\ta\n\ta\n"},
		{hunk: "-\ta\n", wrong: "more than once:\n\ta\n"},
		{hunk: "-b", wrong: "not there:\nb\n"},
		{hunk: "\tb", wrong: `begins with '\t'`},
	} {
		got, err := apply(tt.hunk, code)
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("apply(%q) = %q, %v, want %q, %s", tt.hunk, got, err, tt.want, tt.wrong)
		}
	}
}

func TestEveryExerciseHasAnswers(t *testing.T) {
	vet := []string{"vet"}
	for _, e := range All() {
		right, wrong := 0, 0
		for _, a := range answers(t, e) {
			if strings.HasPrefix(a.name, "right-") {
				right++
			} else {
				wrong++
			}
			if tidy, err := format.Source([]byte(a.code)); err != nil || string(tidy) != a.code {
				t.Errorf("%s/%s is not as gofmt leaves it: %v\n%s", e.name(), a.name, err, a.code)
			}
			vet = append(vet, "./"+put(t, e, "", a.code).Folder)
		}
		if right == 0 || wrong < 3 {
			t.Errorf("lesson %d has %d solutions and %d wrong answers: want at least 1 and 3", e.Lesson, right, wrong)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", vet...)
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet of the answers: %v\n%s", err, out)
	}
}

// TestAnswers holds each solution and each wrong answer to its name. One shop has them all. They are
// checked one after the other: beside each other they would wait for the same servers.
func TestAnswers(t *testing.T) {
	testserver.NeedsServers(t)
	if raceDetector {
		t.Skip("not under the race detector, with which the explorations take minutes: make test runs TestAnswers once more without it")
	}
	var all []Answer
	var names []string
	for _, e := range All() {
		for _, a := range answers(t, e) {
			all = append(all, put(t, e, fmt.Sprintf("mine-%d", len(all)), a.code))
			names = append(names, e.name()+"/"+a.name)
		}
	}
	c := open(t, all...)
	for i, a := range all {
		t.Run(names[i], func(t *testing.T) { checkAnswer(t, c, a, path.Base(names[i])) })
	}
}

func checkAnswer(t *testing.T, c *Checker, a Answer, name string) {
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
}

// open builds a shop with these answers, and a checker of it that ends with the test.
func open(t *testing.T, all ...Answer) *Checker {
	t.Helper()
	program, begun := filepath.Join(t.TempDir(), "shop"), time.Now()
	if err := Build(t.Context(), root(t), program, all...); err != nil {
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
	err = Build(t.Context(), root(t), filepath.Join(t.TempDir(), "shop"), write(t, e, "mine", "return nil"))
	if !errors.As(err, new(errBuild)) || !strings.Contains(err.Error(), "mine.go:") {
		t.Errorf("Build = %v, want what the compiler says of mine.go", err)
	}
}

// write makes an answer of the start of an exercise, with this body of sell.
func write(t *testing.T, e Exercise, name, sell string) Answer {
	t.Helper()
	begun, err := os.ReadFile(e.name() + "/start/mine.go")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?s)(\(stock\.Order, error\)) \{.*`).ReplaceAllString(string(begun), "$1 {\n"+sell+"\n}\n")
	return put(t, e, name, code)
}

// put puts an answer into the checkout for as long as the test runs.
func put(t *testing.T, e Exercise, name, code string) Answer {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root(t), "exercises"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp(filepath.Join(root(t), "exercises"), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.WriteFile(filepath.Join(folder, "mine.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return Answer{e, path.Join("exercises", filepath.Base(folder)), name}
}

func root(t *testing.T) string {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
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
