package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/course"
	"stocklock/internal/lab/exercise"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/words"
	"stocklock/internal/testserver"
)

// Of the marks of a lesson's command (see package course), a cause stands for its sentence. "exit 1" wants that
// exit code. Words in a table stand for a line that has all of them. Where a text is wrapped does not matter.

var updateLessons = flag.Bool("update-lessons", false, "put into the lessons what their commands print now")

const courseFolder = "../../docs/course"

// lessons are the English pages of the course.
func lessons(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(courseFolder, "[0-9]*-*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no lessons: %v", err)
	}
	return slices.DeleteFunc(pages, func(p string) bool { return strings.HasSuffix(p, chineseSuffix) })
}

const chineseSuffix = ".zh-CN.md"

func readPage(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestTheCourseListsItsLessons holds the tables of the course to the pages that there are, in both
// languages, and each exercise to a page.
func TestTheCourseListsItsLessons(t *testing.T) {
	var numbers []int
	for _, path := range lessons(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		number, err := course.NumberOf(name)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
		for index, page := range map[string]string{"README.md": name + ".md", "README" + chineseSuffix: name + chineseSuffix} {
			if !strings.Contains(readPage(t, filepath.Join(courseFolder, index)), "("+page+")") {
				t.Errorf("docs/course/%s does not list %s", index, page)
			}
		}
	}
	for _, e := range exercise.All() {
		if !slices.Contains(numbers, e.Lesson) {
			t.Errorf("the exercise of lesson %d has no page", e.Lesson)
		}
	}
}

// TestLessonsAreMarked holds each command of a lesson to a mark, the printed output to the marked
// words, and the Chinese page to the commands of the English one, in Chinese.
func TestLessonsAreMarked(t *testing.T) {
	for _, path := range lessons(t) {
		page := readPage(t, path)
		commands := course.Commands(page)
		if len(commands) == 0 {
			t.Errorf("%s has no command", path)
		}
		for _, c := range commands {
			switch c.Kind {
			case "":
				t.Errorf("%s: a block has no mark: want <!-- check: WORDS --> or <!-- not checked: WHY --> before it:\n%s", path, c.Block)
			case "check":
				for _, wrong := range missing(words.English, c.Marks, c.Block) {
					t.Errorf("%s: %s: the page does not show %s", path, strings.Join(c.Args(), " "), wrong)
				}
			}
		}
		chinese := strings.TrimSuffix(path, ".md") + chineseSuffix
		translated := course.Commands(readPage(t, chinese))
		if len(translated) != len(commands) {
			t.Errorf("%s has %d commands, and %s %d", path, len(commands), chinese, len(translated))
			continue
		}
		for i, c := range commands {
			twin := translated[i]
			if !slices.Equal(twin.Args(), append(c.Args(), "--lang", "zh")) || twin.Kind != c.Kind || c.Kind == "check" && strings.Count(twin.Marks, " | ") != strings.Count(c.Marks, " | ") {
				t.Errorf("%s: command %d is %q, want that of %s with --lang zh, and as many marks: %q", chinese, i+1, twin.Line(), path, c.Args())
			}
			if wrong := missing(words.Chinese, twin.Marks, twin.Block); c.Kind == "check" && len(wrong) > 0 {
				t.Errorf("%s: %s: the page does not show %s", chinese, twin.Line(), wrong)
			}
		}
	}
}

// TestChinesePagesExplainChineseOutputs: what a drawing says in Chinese is not to be found under its English words.
func TestChinesePagesExplainChineseOutputs(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(courseFolder, "*"+chineseSuffix))
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no Chinese pages: %v", err)
	}
	for _, path := range pages {
		page := readPage(t, path)
		for key, said := range words.English.Messages() {
			inDrawing := key == "at" || strings.HasPrefix(key, "step-")
			if chinese := words.Chinese.Messages()[key]; inDrawing && chinese != said && strings.Contains(page, "`"+said+"`") {
				t.Errorf("%s explains `%s`, and a drawing in Chinese has %s", path, said, chinese)
			}
		}
	}
}

// missing lists the marked words that an output does not have.
func missing(in *words.Language, marks, out string) []string {
	var wrong []string
	between := " "
	if in == words.Chinese {
		between = "" // a line is broken between any two characters
	}
	inOneLine := func(s string) string { return strings.Join(strings.Fields(s), between) }
	for mark := range strings.SplitSeq(marks, " | ") {
		if strings.HasPrefix(mark, "exit ") {
			continue
		}
		if cause, is := strings.CutPrefix(mark, "cause:"); is {
			if mark = in.Or("cause."+cause, ""); mark == "" {
				wrong = append(wrong, fmt.Sprintf("%q, which is no cause", cause))
				continue
			}
		}
		if !strings.Contains(inOneLine(out), inOneLine(mark)) && !anyLineHas(out, strings.Fields(mark)) {
			wrong = append(wrong, fmt.Sprintf("%q", mark))
		}
	}
	return wrong
}

func anyLineHas(out string, all []string) bool {
	for line := range strings.Lines(out) {
		if !slices.ContainsFunc(all, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}

// TestLessons runs each command of each lesson, one after the other, and looks for the words that the
// lesson marks. With -update-lessons it runs those of the Chinese pages, too, and puts what was printed into the pages.
func TestLessons(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	room := openClassroom(t)
	pages := lessons(t)
	if *updateLessons {
		for _, path := range pages {
			pages = append(pages, strings.TrimSuffix(path, ".md")+chineseSuffix)
		}
	}
	for _, path := range pages {
		in := words.English
		if strings.HasSuffix(path, chineseSuffix) {
			in = words.Chinese
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, c := range course.Commands(readPage(t, path)) {
				if c.Kind != "check" {
					continue
				}
				var out, errs bytes.Buffer
				code := room.run(t.Context(), streams{out: &out, err: &errs, args: c.Args()})
				if wrong := missing(in, c.Marks, out.String()); len(wrong) > 0 || code != wantedCode(c.Marks) {
					t.Errorf("loadtest %s: exit code %d, does not print %s\n%s%s", strings.Join(c.Args(), " "), code, wrong, out.String(), errs.String())
					continue
				}
				printed := elided(out.String(), c.Output())
				if !*updateLessons && current(c.Args()[0], printed) != current(c.Args()[0], c.Output()) {
					t.Errorf("%s: what %s prints is another now: scripts/lab-go.sh test ./cmd/loadtest -run 'TestLessons$/%s' -update-lessons", path, c.Line(), filepath.Base(path))
				}
				if *updateLessons {
					command, _, _ := strings.Cut(c.Block, "\n")
					printed = shopBinary.ReplaceAllString(strings.TrimRight(printed, "\n"), "")
					putIntoPage(t, path, c.Block, command+"\n"+printed+"\n")
				}
			}
		})
	}
}

// elision stands in a page for lines of an output that it leaves out.
const elision = " …\n"

// elided is an output without the lines that a page leaves out: it has as many before and after them as the page.
func elided(output, page string) string {
	before, after, leaves := strings.Cut(page, elision)
	lines := slices.Collect(strings.Lines(output))
	first, last := strings.Count(before, "\n"), strings.Count(after, "\n")
	if !leaves || first+last >= len(lines) {
		return output
	}
	return strings.Join(lines[:first], "") + elision + strings.Join(lines[len(lines)-last:], "")
}

// current is the part of an output that no run changes: the whole of a list, what a search has left out, and the
// command that runs a cell again, with the defaults.
func current(command, output string) string {
	switch command {
	case "list":
		return strings.TrimSpace(output)
	case "explore":
		return strings.Join(leftOut.FindAllString(output, -1), "\n")
	case "run": // a longer command is wrapped elsewhere
		again := runAgain.FindString(shopBinary.ReplaceAllString(output, ""))
		return strings.Join(strings.Fields(strings.ReplaceAll(again, "\\\n", "")), " ")
	}
	return ""
}

var (
	leftOut  = regexp.MustCompile(`(?m)^.*: left out: .*$`)
	runAgain = regexp.MustCompile(`(?m)^again: (?:.*\\\n)*.*$`)
)

// classroom runs commands as the program does, but plays all schedules on stages that stay.
type classroom struct {
	shop   *catalog.Catalog
	stages map[time.Duration]*step.Shops // by lease
	test   *testing.T
}

func openClassroom(t *testing.T) classroom {
	t.Helper()
	shop, err := catalog.Open(t.Context(), os.Getenv("LOADTEST_SHOP_BINARY"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shop.Close() })
	return classroom{shop, map[time.Duration]*step.Shops{}, t}
}

// run runs one command, and returns its exit code.
func (r classroom) run(ctx context.Context, s streams) int {
	var c commands
	_, done, err := c.parse(ctx, s)
	if err != nil || done {
		return run(ctx, s.args, s.out, s.err)
	}
	s.lang = words.In(c.Lang)
	switch s.args[0] {
	case "step":
		of, unknown := r.shop.Any(c.Step.Strategy)
		if err = unknown; err == nil {
			c.Step.As, err = c.Step.as(of)
		}
		if c.Step.As == asReservations {
			c.Step.Customers = schedule.MaxCustomers
		}
		if err == nil {
			err = c.Step.play(ctx, s, step.As{Shops: r.stage(c.Step.Lease), Sales: salesOf(c.Step.As)})
		}
	case "explore":
		strategies, unknown := cells.Named(c.Explore.Strategies, r.shop.Strategies, r.shop.Any)
		if err = unknown; err == nil {
			err = c.Explore.search(ctx, s, r.stage(c.Explore.Lease), strategies)
		}
	default:
		return run(ctx, s.args, s.out, s.err)
	}
	if err != nil {
		fmt.Fprintln(s.err, err)
	}
	return exitCode(ctx, err)
}

// stage is the one with this lease. It is opened for the first command that needs it. What is put into a page
// is played on a stage of its own, as the command does: a lock that somebody waited for before answers otherwise.
func (r classroom) stage(lease time.Duration) *step.Shops {
	if r.stages[lease] == nil || *updateLessons {
		s, err := step.OpenShops(r.test.Context(), r.shop, step.Options{Lease: lease, OwnSlots: 2})
		if err != nil {
			r.test.Fatal(err)
		}
		r.test.Cleanup(func() {
			if err := s.Close(); err != nil {
				r.test.Error(err)
			}
		})
		r.stages[lease] = s
	}
	return r.stages[lease]
}

// shopBinary is in the command that a run prints only because this test builds the shop once.
var shopBinary = regexp.MustCompile(`(?: \\\n *| )--shop-binary \S+`)

func wantedCode(marks string) int {
	code := 0
	for mark := range strings.SplitSeq(marks, " | ") {
		fmt.Sscanf(mark, "exit %d", &code)
	}
	return code
}

// putIntoPage replaces a block.
func putIntoPage(t *testing.T, path, block, by string) {
	t.Helper()
	changed := strings.Replace(readPage(t, path), "```console\n"+block+"```", "```console\n"+by+"```", 1)
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoExerciseIsOneLine(t *testing.T) {
	var lessons []string
	for _, e := range exercise.All() {
		lessons = append(lessons, fmt.Sprint(e.Lesson))
	}
	for args, want := range map[string]string{
		"exercise 99":                 "lesson 99 has no exercise: want one of " + strings.Join(lessons, ", "),
		"exercise 99 --check":         "lesson 99 has no exercise",
		"exercise --check":            "--check, --hint and --from want a lesson",
		"exercise --hint":             "--check, --hint and --from want a lesson",
		"exercise --from 2":           "--check, --hint and --from want a lesson",
		"exercise 3 --from 3":         "want an exercise before",
		"exercise 2 --from 1":         "want an exercise before",
		"exercise 5 --from 4":         "want an exercise before",
		"exercise 7 --from 2":         "want an exercise before",
		"exercise 3 --from 2":         "begin with loadtest exercise 2",
		"exercise three":              "three",
		"exercise 3 --check --from 2": "--from begins an exercise",
		"exercise 3 --hint --from 2":  "--from begins an exercise",
		"exercise 3 --hint --check":   "want --check or --hint",
		"exercise --shell --check":    "--shell starts servers",
		"exercise 3 --shell":          "--shell starts servers",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &errs); code != exitUsage || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("loadtest %s: exit code %d, %q, want %d and one line with %q", args, code, errs.String(), exitUsage, want)
		}
	}
	t.Setenv("LANG", "zh_CN.UTF-8") // which is asked on a terminal alone
	for _, tt := range []struct{ args, task string }{{"exercise", "nobody else's"}, {"exercise --lang zh", "不释放别人的"}, {"--lang en exercise", "nobody else's"}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &out, &errs)
		if code != 0 || strings.Count(out.String(), "\n") != len(lessons) || !strings.Contains(out.String(), tt.task) {
			t.Errorf("loadtest %s: exit code %d, %q, %q", tt.args, code, out.String(), errs.String())
		}
	}
}

// TestAnExerciseThatIsBegunStaysAsItIs: --from says so, and does not look as if it had gone on with anything.
func TestAnExerciseThatIsBegunStaysAsItIs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("go.mod", []byte("module stocklock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"exercise 2", 0, "Begin in:"}, {"exercise 3", 0, "Begin in:"}, {"exercise 3", 0, "there already"},
		{"exercise 3 --from 2", exitUsage, "is there already: move it away to go on with your code of lesson 2"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(tt.args), &out, &errs); code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("loadtest %s: exit code %d, %q, %q, want %d and %q", tt.args, code, out.String(), errs.String(), tt.code, tt.want)
		}
	}
	for _, in := range [][2]string{{"exercises/lesson3", "../lesson2/mine.go"}, {"../lesson2", "./mine.go"}} { // what is printed can be typed
		folder, want := in[0], in[1]
		t.Chdir(folder)
		var out bytes.Buffer
		if code := run(t.Context(), []string{"exercise", "2"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), " "+want+"\n") {
			t.Errorf("in %s: exit code %d, %q, want %s", folder, code, out.String(), want)
		}
	}
}

// TestThePageStartsTheCommands holds what the page starts for a command of a lesson to the flags that the
// program reads.
func TestThePageStartsTheCommands(t *testing.T) {
	for _, path := range lessons(t) {
		for _, of := range course.Commands(readPage(t, path)) {
			var c commands
			_, _, err := c.parse(t.Context(), streams{out: io.Discard, err: io.Discard, args: of.Args()})
			if err != nil {
				t.Fatalf("%s: %v", of.Line(), err)
			}
			got := of.Action()
			switch of.Args()[0] {
			case "list", "exercise":
				if got != nil {
					t.Errorf("%s: the page starts %+v", of.Line(), got)
				}
			case "step":
				plan, err := schedule.Parse(got.Schedule)
				if err != nil || got.Strategies[0] != c.Step.Strategy || got.Schedule != strings.Join(c.Step.Schedule, " ") || got.Customers != max(c.Step.Customers, plan.Customers(), 2) {
					t.Errorf("%s: the page plays %+v", of.Line(), got)
				}
			case "explore":
				if !slices.Equal(got.Strategies, c.Explore.Strategies) || strings.Join(got.Events, ",") != strings.ReplaceAll(strings.Join(c.Explore.Events, ","), "none", "") {
					t.Errorf("%s: the page explores %+v", of.Line(), got)
				}
			case "run":
				if got.Explain != (c.Run.Draw && len(got.Cells) == 1) || len(got.Cells) == 0 || got.Cells[0].Strategy == "" || got.Cells[0].Scenario == "" {
					t.Errorf("%s: the page runs %+v", of.Line(), got)
				}
			default:
				t.Errorf("%s: the page has no place for it", of.Line())
			}
		}
	}
}
