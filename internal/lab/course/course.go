// Package course reads the lessons of docs/course: their steps, and the commands in them.
//
// In a lesson, a comment before a console block says what of its output has to be the same in each
// run, and the block has the command with what it printed once:
//
//	<!-- check: oversold 1 | cause:no-lock -->
//	```console
//	$ loadtest step none A.select B.select --draw
//	```
//
// A block that is not run says why: <!-- not checked: why -->.
//
// # Decisions
//
// A lesson is read, not kept twice. Package course reads the pages of docs/course: their steps by
// the headings, and their commands from the console blocks. The tests run these commands, and the
// page starts what they mean, with its own servers. A command that the page has no place for stays
// text.
package course

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Lesson is a page of the course in one language.
type Lesson struct {
	Number int
	File   string // in the folder of the course
	Title  string
	Steps  []Step
}

// Step is a part of a lesson between two headings.
type Step struct {
	Kind  string // see Kinds
	Title string // as the page has it; of the first step the lesson's
	Parts []Part
}

// Kinds are the steps of each lesson, in their order.
var Kinds = []string{"read", "predict", "run", "explain", "change", "questions"}

// Part is a text in Markdown, or a command.
type Part struct {
	Text    string
	Command *Command
}

// Command is a console block.
type Command struct {
	Kind  string // of the comment: "check", "not checked", or empty for none
	Marks string // of the comment: what has to be the same in each run, or why it is not run
	Block string // what is between the fences
}

// Line is the command as it is typed.
func (c Command) Line() string {
	line, _, _ := strings.Cut(c.Block, "\n")
	return strings.TrimPrefix(line, "$ ")
}

// Args are the words of the command behind loadtest, without its comment.
func (c Command) Args() []string {
	line, _, _ := strings.Cut(strings.TrimPrefix(c.Line(), "loadtest "), " #")
	return strings.Fields(line)
}

// Output is what it printed once.
func (c Command) Output() string {
	_, output, _ := strings.Cut(c.Block, "\n")
	return output
}

var block = regexp.MustCompile("(?:<!-- (check|not checked): ([^\n]*) -->\n)?```console\n((?s:.*?))```")

// Commands reads the console blocks of a page.
func Commands(page string) []Command {
	var all []Command
	for _, m := range block.FindAllStringSubmatch(page, -1) {
		all = append(all, Command{Kind: m[1], Marks: m[2], Block: m[3]})
	}
	return all
}

// parts are the texts of a page, and the commands between them.
func parts(page string) []Part {
	var all []Part
	end := 0 // of the last block
	for _, at := range block.FindAllStringIndex(page, -1) {
		all = append(all, Part{Text: page[end:at[0]]}, Part{Command: &Commands(page[at[0]:at[1]])[0]})
		end = at[1]
	}
	return slices.DeleteFunc(append(all, Part{Text: page[end:]}), func(p Part) bool {
		return p.Command == nil && strings.TrimSpace(p.Text) == ""
	})
}

// NumberOf is the number with which the name of a lesson's page begins.
func NumberOf(name string) (int, error) {
	digits, _, _ := strings.Cut(name, "-")
	return strconv.Atoi(digits)
}

// Lessons reads the lessons in a folder. The suffix of a page's name is its language: ".md" or
// ".zh-CN.md".
func Lessons(folder fs.FS, suffix string) ([]Lesson, error) {
	names, err := fs.Glob(folder, "[0-9]*-*"+suffix)
	if err != nil {
		return nil, err
	}
	var all []Lesson
	for _, name := range names {
		if suffix == ".md" && strings.Contains(name, ".zh-CN.") {
			continue
		}
		page, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		lesson, err := read(path.Base(name), string(page))
		if err != nil {
			return nil, err
		}
		all = append(all, lesson)
	}
	slices.SortFunc(all, func(a, b Lesson) int { return a.Number - b.Number })
	return all, nil
}

// heading begins a step; one inside a block begins with another sign.
var heading = regexp.MustCompile(`(?m)^##? (.*)$`)

func read(name, page string) (Lesson, error) {
	number, err := NumberOf(name)
	if err != nil {
		return Lesson{}, fmt.Errorf("%s: a lesson's page begins with its number", name)
	}
	l := Lesson{Number: number, File: name}
	places := heading.FindAllStringSubmatchIndex(page, -1)
	if len(places) != len(Kinds) {
		return l, fmt.Errorf("%s has %d headings: want %d, one for each of %v", name, len(places), len(Kinds), Kinds)
	}
	for i, at := range places {
		end := len(page)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		l.Steps = append(l.Steps, Step{Kind: Kinds[i], Title: page[at[2]:at[3]], Parts: parts(page[at[1]:end])})
	}
	l.Title = l.Steps[0].Title
	return l, nil
}
