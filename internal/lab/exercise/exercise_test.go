package exercise

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
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
		}
		if right == 0 || wrong < 3 {
			t.Errorf("lesson %d has %d solutions and %d wrong answers: want at least 1 and 3", e.Lesson, right, wrong)
		}
	}
	if os.Getenv(vetEnv) == "" {
		return
	}
	if out, err := rig.GoCommand(t.Context(), root(t), "vet", "./"+put(t, "vetted", everyAnswer(t))[0].Folder).CombinedOutput(); err != nil {
		t.Errorf("go vet of the answers: %v\n%s", err, out)
	}
}

// task is code under the task of an exercise.
type task struct {
	of Exercise
	edited
}

// everyAnswer has the answers to each exercise under its task.
func everyAnswer(t *testing.T) (all []task) {
	for _, e := range All() {
		for _, a := range answers(t, e) {
			a.name = e.name() + "/" + a.name
			all = append(all, task{e, a})
		}
	}
	return all
}

// TestAnswers holds each solution and each wrong answer to its name, by the schedules that are kept with
// it, the first search of its exercise and a crowd. TestAnswersInFull has the whole check decide.
func TestAnswers(t *testing.T) {
	c, as := open(t), everyAnswer(t)
	var playing sync.WaitGroup
	turns := make(chan bool, 12)
	for _, a := range as {
		for _, k := range a.shown {
			on, err := c.player(a.of, playLease, k.oneShop)
			if err != nil {
				t.Fatal(err)
			}
			playing.Go(func() {
				turns <- true
				defer func() { <-turns }()
				v, err := on.judge(t.Context(), c.answers[a.name].Name, k)
				holdToName(t, a.name, k.order.String(), v, err)
			})
		}
	}
	playing.Wait()
	for _, a := range as {
		of := c.answers[a.name]
		searches := of.Exercise.Searches[:min(1, len(of.Exercise.Searches))]
		switch {
		case strings.Contains(a.name, "/right-"):
		case len(a.shown) > 0:
			continue
		default:
			searches = nil
		}
		of.Exercise.Searches = searches
		v, err := c.Check(t.Context(), of, func(words.Text) {})
		holdToName(t, a.name, "the first search and a crowd", v, err)
	}
}

// playLease is the lease of a schedule that is played by itself.
const playLease = 600 * time.Millisecond

// judge plays one schedule of an answer, and judges it as a check does.
func (p player) judge(ctx context.Context, answer string, k kept) (Verdict, error) {
	record, err := p.PlaySchedule(ctx, answer, k.customers, k.order)
	if err != nil {
		return failed(ctx, p, err)
	}
	if !record.Outcome.Bad() {
		return Verdict{Solved: true, Record: &record}, nil
	}
	return p.verdict(record), nil
}

// withoutALock is a solution of lesson 1 under the task of each later exercise of a lock, and of its tokens.
func withoutALock(t *testing.T) (all []task) {
	first := answers(t, exercises[0])[0]
	for _, later := range exercises[1:5] {
		all = append(all, task{later, edited{name: first.name + " as " + later.name(), code: first.code}})
	}
	return all
}

// TestASaleWithoutALockIsNoLaterSolution: a solution of lesson 1 is right without a lock. Under the task of a later
// exercise, it is not.
func TestASaleWithoutALockIsNoLaterSolution(t *testing.T) {
	c := open(t)
	for _, a := range withoutALock(t) {
		v, err := c.Check(t.Context(), c.answers[a.name], func(words.Text) {})
		want := verdict.NoLock
		if !a.of.GuardAlone {
			want = verdict.Unlocked
		}
		if err != nil || v.Solved || v.Cause != want {
			t.Errorf("%s: %+v, %v, want the cause %s", a.name, v, err, want)
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

// checker checks answers, which it has by their names.
type checker struct {
	*Checker
	answers map[string]Answer
}

// opened has all that the tests check. To build it takes longer than to check it.
var opened *checker

// open returns the checker of all tests, which run one after the other.
func open(t *testing.T) *checker {
	t.Helper()
	if opened == nil {
		opened = openWith(t, "all", slices.Concat(everyAnswer(t), withoutALock(t), unbounded(t)))
	}
	return opened
}

// programs has the folder of the shops.
var programs = sync.OnceValues(testserver.New)

// openWith builds a shop with these answers, and a checker of it. Both end with the test binary.
func openWith(t *testing.T, name string, all []task) *checker {
	t.Helper()
	testserver.NeedsServers(t)
	home, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	answers, program, begun := put(t, name, all), filepath.Join(home.Dir(), name), time.Now()
	if err := Build(t.Context(), root(t), program, answers...); err != nil {
		t.Fatal(err)
	}
	t.Logf("a shop with %d answers built in %s", len(all), time.Since(begun).Round(time.Second))
	c, err := Open(context.Background(), program)
	if err != nil {
		t.Fatal(err)
	}
	c.ownSlots = 2
	made := &checker{c, map[string]Answer{}}
	for i, a := range all {
		made.answers[a.name] = answers[i]
	}
	return made
}

// bounds are bodies of sell that do what no sale may.
var bounds = []struct {
	name  string
	cause verdict.Cause
	said  string
	sell  string
}{
	{"nothing is sold", verdict.NeverSold, "answered with sold_out", `return stock.Order{}, stock.ErrSoldOut`},
	{"a panic", verdict.Crash, "panic: no unit is left",
		`if item, _ := store.Read(ctx, wanted.ItemID); item.Stock == 1 { panic("no unit is left") }; return store.Decrement(ctx, wanted)`},
	{"300 requests", verdict.TooManyRequests, "have sent 250 requests",
		`for range 300 { store.Read(ctx, wanted.ItemID) }; return store.Decrement(ctx, wanted)`},
	{"silence", verdict.TooSilent, "nothing was heard of the shops for 4s", `select {}`},
	{"a panic that a crowd alone meets", verdict.Crash, "panic: nobody recovers it",
		`if wanted.Quantity > 1 { go panic("nobody recovers it") }; return store.Decrement(ctx, wanted)`},
	{"its own context", verdict.WithoutContext, "to MySQL was sent without the context of its sale", `return store.Decrement(context.Background(), wanted)`},
	{"its own context behind the answer", verdict.WithoutContext, "pass ctx on",
		`go store.Decrement(context.Background(), wanted); return stock.Order{ID: 1, PublicID: wanted.RequestID, ItemID: wanted.ItemID, Quantity: wanted.Quantity}, nil`},
	{"a loop without an end", verdict.TooManyRequests, "the sales do not end", `for { store.Read(ctx, wanted.ItemID) }`},
}

func unbounded(t *testing.T) (all []task) {
	for _, b := range bounds {
		all = append(all, selling(t, b.name, b.sell))
		of := &all[len(all)-1].of
		of.MaxCommits = 0.5 // so that the crowd gathers
		if strings.HasSuffix(b.name, "a crowd alone meets") {
			of.Searches = of.Searches[:1]
		}
	}
	return all
}

// TestBounds: code that crashes, waits for itself, or sends too much is found out and named. It has shops of its
// own: what goes on without end ends with them.
func TestBounds(t *testing.T) {
	all := open(t)
	c, err := Open(t.Context(), all.shop.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.silence /= 2
	for _, tt := range bounds {
		t.Run(tt.name, func(t *testing.T) {
			begun := time.Now()
			v, err := c.Check(t.Context(), all.answers[tt.name], func(step words.Text) { t.Log(step) })
			if err != nil || v.Solved || v.Cause != tt.cause || !strings.Contains(v.Said.String(), tt.said) {
				t.Errorf("Check = %+v, %v, want %s: %s", v, err, tt.cause, tt.said)
			}
			t.Logf("%s after %s", v.Said, time.Since(begun).Round(time.Second))
		})
	}
}

// TestATimeThatIsToPassIsNoSilence of the code, although it is longer than that may last.
func TestATimeThatIsToPassIsNoSilence(t *testing.T) {
	c := open(t)
	a := c.answers["lesson4/right-watchdog"]
	const lease = 2 * time.Second
	on, err := c.player(a.Exercise, lease, false)
	if err != nil {
		t.Fatal(err)
	}
	on.silence = lease
	if r, err := on.playText(t.Context(), a.Name, "A wait B"); err != nil || r.Outcome.Bad() {
		t.Errorf("%+v, %v", r.Outcome, err)
	}
}

func TestBuildSaysWhatTheCompilerSays(t *testing.T) {
	testserver.NeedsServers(t)
	err := Build(t.Context(), root(t), filepath.Join(t.TempDir(), "shop"), put(t, "wrong", []task{selling(t, "nothing", "return nil")})...)
	if !errors.As(err, new(errBuild)) || !strings.Contains(err.Error(), "0.go:") {
		t.Errorf("Build = %v, want what the compiler says of 0.go", err)
	}
	all := put(t, "without", []task{selling(t, "renamed", "return stock.Order{}, nil")})
	all[0].Func = "Build"
	err = Build(t.Context(), root(t), filepath.Join(t.TempDir(), "shop"), all...)
	if said, not := Compiler(err); !not || !strings.Contains(said.String(), "exercises/test/without has to have func Build(") {
		t.Errorf("Build = %v, want what its folder has to have", err)
	}
}

// goThat puts a go command into the PATH, and in the place of that of Build.
func goThat(t *testing.T, does string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "go")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+does), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GO", program)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestAGoCommandThatFailsIsNoAnswer: what it says is not about the pupil's code.
func TestAGoCommandThatFailsIsNoAnswer(t *testing.T) {
	here := root(t)
	goThat(t, "echo 'dial tcp: lookup proxy.golang.org' >&2; exit 1")
	err := Build(t.Context(), here, filepath.Join(t.TempDir(), "shop"), exercises[1].Mine())
	if _, not := Compiler(err); not || err == nil || !strings.Contains(err.Error(), "dial tcp") {
		t.Errorf("Build = %v, compiler's: %t", err, not)
	}
	if found, err := Root(); err != nil || found != here {
		t.Errorf("Root = %q, %v, want %q: a go command that fails is no missing checkout", found, err, here)
	}
}

// TestABuildThatEndsEarlyLeavesNothing: the go command removes its folder.
func TestABuildThatEndsEarlyLeavesNothing(t *testing.T) {
	here, folder := root(t), filepath.Join(t.TempDir(), "work")
	goThat(t, "trap 'rmdir "+folder+"; kill $!; exit 1' INT; mkdir "+folder+"; sleep 30 & wait")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(folder); err == nil {
				cancel()
			}
		}
	}()
	err := Build(ctx, here, filepath.Join(t.TempDir(), "shop"), exercises[1].Mine())
	if _, left := os.Stat(folder); !errors.Is(err, context.Canceled) || left == nil {
		t.Errorf("Build = %v, and left its folder: %t", err, left == nil)
	}
}

// TestAProgramThatIsNotLoaded is an answer that fails: its package is run when the shop is asked for its strategies.
func TestAProgramThatIsNotLoaded(t *testing.T) {
	for _, tt := range []struct {
		does, said string
		cause      verdict.Cause
		silence    time.Duration
	}{
		{`echo 'panic: assignment to entry in nil map' >&2; exit 2`, "panic: assignment to entry in nil map", verdict.Crash, maxSilence},
		{`exec sleep 60`, "does the code wait for itself?", verdict.TooSilent, time.Second},
	} {
		program := filepath.Join(t.TempDir(), "shop")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+tt.does), 0o700); err != nil {
			t.Fatal(err)
		}
		c := &Checker{background: t.Context(), silence: tt.silence}
		if err := c.open(t.Context(), program); err != nil {
			t.Fatal(err)
		}
		v, err := c.Check(t.Context(), exercises[6].Mine(), func(words.Text) {})
		if err != nil || v.Cause != tt.cause || !strings.Contains(v.Said.String(), tt.said) {
			t.Errorf("%s: %+v, %v", tt.does, v, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestABuildChangesNoCheckThatRuns: the shops of a check are those that it began with.
func TestABuildChangesNoCheckThatRuns(t *testing.T) {
	all := open(t).shop.Program
	program := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("cp", all, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c, err := Open(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := errors.Join(os.Remove(program), os.WriteFile(program, []byte("#!/bin/sh\nexit 1"), 0o700)); err != nil {
		t.Fatal(err)
	}
	a := open(t).answers["lesson2/right-set"]
	a.Exercise.Searches = nil
	if v, err := c.Check(t.Context(), a, func(words.Text) {}); err != nil || !v.Solved {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestOwnersOnTwoMachines: what two containers share makes no owner.
func TestOwnersOnTwoMachines(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	values := map[string]string{
		"4711-1": "pid-1", "shop 4712 1": "shop pid 1", "47110-1": "47110-1", "1800000000123": "now", "1800000000": "now", "1800000000123456-7": "now-7",
		"99999999999999999999": "99999999999999999999",
	}
	for _, name := range namesOfMachine() {
		if name != "" {
			values[name+"-4711-1"] = name + "-4711-1"
		}
	}
	for value, want := range values {
		if got := anywhere(value, []int{4711, 4712}, now); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

// selling makes an answer of the start of the first exercise, with this body of sell.
func selling(t *testing.T, name, sell string) task {
	t.Helper()
	begun, err := os.ReadFile(exercises[0].name() + "/start/mine.go")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?s)(\(stock\.Order, error\)) \{.*`).ReplaceAllString(string(begun), "$1 {\n"+sell+"\n}\n")
	return task{exercises[0], edited{name: name, code: code}}
}

// put puts answers into the checkout for as long as the test runs. They are one package: each package of its own
// would take seconds to compile. Its folder is the same in each run, so that the compiler's cache has it.
func put(t *testing.T, folder string, all []task) []Answer {
	t.Helper()
	folder = path.Join("exercises", "test", folder)
	dir := filepath.Join(root(t), filepath.FromSlash(folder))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	put := make([]Answer, len(all))
	for i, a := range all {
		number := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(dir, number+".go"), []byte(renamed(t, a.code, number)), 0o600); err != nil {
			t.Fatal(err)
		}
		put[i] = Answer{a.of, folder, "Build" + number, "mine-" + number}
	}
	return put
}

// renamed is a file that can be in one package with others like it: what it declares has the ending in its name.
func renamed(t *testing.T, code, ending string) string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, ending+".go", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	named := types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	lenient := types.Config{Error: func(error) {}} // it knows no other package
	of, _ := lenient.Check("mine", files, []*ast.File{file}, &named)
	for _, all := range []map[*ast.Ident]types.Object{named.Defs, named.Uses} {
		for name, object := range all {
			if object != nil && object.Parent() == of.Scope() {
				name.Name += ending
			}
		}
	}
	var out strings.Builder
	if err := format.Node(&out, files, file); err != nil {
		t.Fatal(err)
	}
	return out.String()
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

// TestHints: each exercise has some, none gives a whole solution at once, and all are there in Chinese.
func TestHints(t *testing.T) {
	for _, e := range All() {
		for _, said := range append(e.Helps(), e.Asks()) {
			if words.Chinese.Say(said) == said.String() {
				t.Errorf("exercise %d: %q is not said in Chinese", e.Lesson, said)
			}
		}
		if len(e.Hints) < 2 {
			t.Errorf("exercise %d has the hints %q, want two at least", e.Lesson, e.Hints)
		}
	}
	// An order that is not found may be on its way: page 6 says so.
	helps := exercises[5].Helps()
	last := helps[len(helps)-1]
	for in, want := range map[*words.Language]string{words.English: "under the same id", words.Chinese: "用同一个 id 再试"} {
		if said := in.Say(last); !strings.Contains(said, want) {
			t.Errorf("in %s, the last hint of exercise 6 is %q, want %q in it", in, said, want)
		}
	}
}
