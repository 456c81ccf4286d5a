package exercise

import (
	"errors"
	"fmt"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/testserver"
)

// edited is an answer that lessonN/answers.diff makes of the start, or of an answer above it.
type edited struct {
	name, code string
	shown      []kept
}

// kept is a schedule that is kept with an answer: a wrong one fails in it, a right one holds.
type kept struct {
	customers int
	oneShop   bool
	order     schedule.Schedule
}

var header = regexp.MustCompile(`^# (.+)\n--- (.+)\n\+\+\+ ((?:right|wrong-.+)-.+)((?:\n> .+)*)(\n@@\n|$)`)

// answers reads lessonN/answers.diff, and applies each edit in it. An edit says in a line what the
// answer does. Then come the answer that it edits, its own name, right-NAME or wrong-CAUSE-NAME, the
// schedules that are kept with it, and the hunks. A schedule begins with the number of its customers if
// it does not name them all, and with one-shop if they buy at one. A wrong answer without one is shown by a crowd. A hunk is found by its lines
// alone.
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
		header := header.FindStringSubmatch(edit)
		if header == nil {
			t.Fatalf("%s/answers.diff: want # WHAT IT DOES, --- ANSWER, +++ right-NAME or wrong-CAUSE-NAME, > SCHEDULE and the hunks, not:\n%s", e.name(), edit)
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
		a := edited{name: name, code: "// Package mine " + does + ".\npackage mine\n" + code}
		for _, line := range strings.Split(header[4], "\n> ")[1:] {
			a.shown = append(a.shown, parseKept(t, line))
		}
		all = append(all, a)
	}
	return all
}

func parseKept(t *testing.T, line string) (k kept) {
	t.Helper()
	line, k.oneShop = strings.CutPrefix(line, "one-shop ")
	if number, rest, _ := strings.Cut(line, " "); len(number) == 1 {
		k.customers, line = int(number[0]-'0'), rest
	}
	order, err := schedule.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	k.order, k.customers = order, max(k.customers, order.Customers())
	return k
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

// When this variable is set to anything, the answers are vetted, which needs the facts of every dependency:
// make lint has them.
const vetEnv = "EXERCISE_VET"

func TestEveryExerciseHasAnswers(t *testing.T) {
	var vetted []string
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
			if os.Getenv(vetEnv) == "" {
				continue
			}
			vetted = append(vetted, "./"+put(t, e, e.name()+a.name, "", a.code).Folder)
		}
		if right == 0 || wrong < 3 {
			t.Errorf("lesson %d has %d solutions and %d wrong answers: want at least 1 and 3", e.Lesson, right, wrong)
		}
	}
	if len(vetted) == 0 {
		return
	}
	if out, err := rig.GoCommand(t.Context(), root(t), append([]string{"vet"}, vetted...)...).CombinedOutput(); err != nil {
		t.Errorf("go vet of the answers: %v\n%s", err, out)
	}
}

// put all answers of all exercises into the checkout, for one shop.
func putAll(t *testing.T) (all []Answer, as []edited) {
	for _, e := range All() {
		for _, a := range answers(t, e) {
			all = append(all, put(t, e, e.name()+a.name, fmt.Sprintf("mine-%d", len(all)), a.code))
			a.name = e.name() + "/" + a.name
			as = append(as, a)
		}
	}
	return all, as
}

// TestAnswers holds each solution and each wrong answer to its name, by the schedules that are kept with
// it. The first search and a crowd decide the first solution of each exercise, and a crowd the wrong answers that no
// schedule shows. One shop has all answers. TestAnswersInFull has the whole check decide on each.
func TestAnswers(t *testing.T) {
	testserver.NeedsServers(t)
	all, as := putAll(t)
	c := open(t, all...)
	c.ownSlots = 2
	var playing sync.WaitGroup
	turns := make(chan bool, 12)
	for i, a := range as {
		for _, k := range a.shown {
			playing.Go(func() {
				turns <- true
				defer func() { <-turns }()
				v, err := c.Play(t.Context(), all[i], k.customers, k.order, k.oneShop)
				holdToName(t, a.name, k.order.String(), v, err)
			})
		}
	}
	playing.Wait()
	solved := map[int]bool{}
	for i, a := range as {
		searches, lesson := all[i].Exercise.Searches[:min(1, len(all[i].Exercise.Searches))], all[i].Exercise.Lesson
		switch right := strings.Contains(a.name, "/right-"); {
		case right && !solved[lesson]:
			solved[lesson] = true
		case right || len(a.shown) > 0:
			continue
		default:
			searches = nil
		}
		of := all[i]
		of.Exercise.Searches = searches
		v, err := c.Check(t.Context(), of, func(string) {})
		holdToName(t, a.name, "the first search and a crowd", v, err)
	}
}

// TestASaleWithoutALockIsNoLaterSolution: a solution of lesson 1 is right without a lock. Under the task of a later
// exercise of the program that grows, it is not.
func TestASaleWithoutALockIsNoLaterSolution(t *testing.T) {
	testserver.NeedsServers(t)
	first := answers(t, exercises[0])[0]
	var all []Answer
	for _, later := range exercises[1:Grown] {
		all = append(all, put(t, later, "later-"+later.name(), "mine-"+later.name(), first.code))
	}
	c := open(t, all...)
	for _, a := range all {
		v, err := c.Check(t.Context(), a, func(string) {})
		want := Cause(schedule.NoLock)
		if !a.Exercise.GuardAlone {
			want = Unlocked
		}
		if err != nil || v.Solved || v.Cause != want {
			t.Errorf("%s as %s: %+v, %v, want the cause %s", first.name, a.Exercise.name(), v, err, want)
		}
	}
}

// holdToName compares what was found with the name of an answer.
func holdToName(t *testing.T, path, by string, v Verdict, err error) {
	t.Helper()
	_, name, _ := strings.Cut(path, "/")
	right := strings.HasPrefix(name, "right-")
	if err != nil || right != v.Solved || !right && !strings.HasPrefix(name, "wrong-"+string(v.Cause)+"-") {
		t.Errorf("%s: %s: solved %t, cause %q: %s, %v", path, by, v.Solved, v.Cause, v.Said, err)
	}
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
	return put(t, e, "bounds"+name, name, code)
}

// put puts an answer into the checkout for as long as the test runs. Its folder is the same in each run,
// so that the compiler's cache has it.
func put(t *testing.T, e Exercise, folder, name, code string) Answer {
	t.Helper()
	folder = path.Join("exercises", "test", folder)
	dir := filepath.Join(root(t), filepath.FromSlash(folder))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "mine.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return Answer{e, folder, name}
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
		if written, err := e.Write(root, nil); err != nil || !written {
			t.Fatalf("Write = %t, %v", written, err)
		}
		file := filepath.Join(root, e.File())
		if err := os.WriteFile(file, []byte("package mine // mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		written, err := e.Write(root, nil)
		content, _ := os.ReadFile(file)
		if err != nil || written || string(content) != "package mine // mine" {
			t.Errorf("lesson %d: a second Write = %t, %v, and left %q", e.Lesson, written, err, content)
		}
	}
}

// TestAnExerciseGoesOnWithOnesOwnCode: under the task of the new lesson.
func TestAnExerciseGoesOnWithOnesOwnCode(t *testing.T) {
	root := t.TempDir()
	second, third := exercises[1], exercises[2]
	if _, err := third.Write(root, &second); err == nil {
		t.Error("it went on with code that is not there")
	}
	if _, err := second.Write(root, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, second.File())
	own, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own = append(own, "\n// my own code\n"...)
	if err := os.WriteFile(file, own, 0o644); err != nil {
		t.Fatal(err)
	}
	if written, err := third.Write(root, &second); err != nil || !written {
		t.Fatalf("written %v, %v", written, err)
	}
	got, err := os.ReadFile(filepath.Join(root, third.File()))
	if err != nil || !strings.HasPrefix(string(got), "// Package mine is exercise 3:") || !strings.HasSuffix(string(got), "// my own code\n") || strings.Count(string(got), "package mine") != 1 {
		t.Errorf("exercise 3 begins with %q, %v", got, err)
	}
}

// TestHints: each exercise has some, and none gives a whole solution at once.
func TestHints(t *testing.T) {
	for _, e := range All() {
		if len(e.Hints) < 2 {
			t.Errorf("exercise %d has the hints %q, want two at least", e.Lesson, e.Hints)
		}
	}
}
