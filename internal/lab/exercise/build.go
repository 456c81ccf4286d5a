package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"text/template"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/words"
)

// registration is the file that is laid over cmd/shop: it offers what a pupil wrote.
var registration = template.Must(template.New("mine.go").Parse(`//go:build lab

package main

import (
	"stocklock/internal/shop/program"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
{{range $i, $a := .}}
	mine{{$i}} "stocklock/{{$a.Folder}}"
{{- end}}
)

func init() {
{{- range $i, $a := .}}
	program.Offer(ladder.Declare(strategy.Strategy{
		Name: "{{$a.Name}}", Doc: "what a pupil wrote",
		{{- if $a.Exercise.GuardAlone}}
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			guard, _ := mine{{$i}}.{{$a.Func}}(d)
			return guard, strategy.ReadThenWrite
		},
		{{- else}}
		Build: mine{{$i}}.{{$a.Func}},
		{{- end}}
	}, declared.Strategy{
		Source: "exercise {{$a.Exercise.Lesson}} of the course", Guard: "see the code", Decrement: "see the code", Telling: "contention",
		AnswersFirst: true, // it may: nothing is assumed of it
		Properties: declared.Properties{Has: {{printf "%d" $a.Exercise.Properties.Has}}, NotApplicable: {{printf "%d" $a.Exercise.Properties.NotApplicable}}},
		{{- if $a.Exercise.Baskets}}
		OnlyBaskets: true, Baskets: &declared.Properties{ // of which its cells decide
			Has: declared.Crossable | declared.AddsUp | declared.Isolated | declared.Whole | declared.FreesLocks | declared.Unstarved | declared.Complete,
		},
		{{- end}}
	}))
{{- end}}
}
`))

// Answer is what somebody wrote for an exercise.
type Answer struct {
	Exercise Exercise
	Folder   string // of its package, below the checkout, with slashes
	Func     string // of the package: it makes the guard and the decrement
	Name     string // of the strategy that it becomes
}

// Mine is the answer of the pupil who works in this checkout.
func (e Exercise) Mine() Answer { return Answer{e, path.Join("exercises", e.name()), "Build", "mine"} }

// errBuild is an error of the compiler about the pupil's code.
type errBuild struct{ said words.Text }

func (e errBuild) Error() string { return e.said.String() }

// Compiler returns what the compiler said of an answer, where that is the error.
func Compiler(err error) (said words.Text, not bool) {
	e, not := errors.AsType[errBuild](err)
	return e.said, not
}

// Build builds the lab's shop with these answers as strategies. It writes the program, and nothing
// else, into the checkout. An error of the compiler about an answer is said as the compiler says it.
func Build(ctx context.Context, root, program string, answers ...Answer) error {
	temporary, err := os.MkdirTemp("", "stocklock-exercise-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	var code bytes.Buffer
	if err := registration.Execute(&code, answers); err != nil {
		return err
	}
	overlay, err := rig.Overlay(temporary, root, map[string]string{"cmd/shop/mine.go": code.String()})
	if err != nil {
		return err
	}
	build := rig.GoCommand(ctx, root, "build", "-overlay", overlay, "-o", program, "./cmd/shop")
	var said bytes.Buffer
	build.Stdout, build.Stderr = &said, &said
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return aboutAnswer(err, strings.TrimSpace(said.String()), answers)
	}
	return nil
}

// aboutAnswer tells what is wrong with an answer from all else that the go command fails for, such as a module that cannot
// be fetched. The compiler says nothing of an answer where Build is not what the registration calls.
func aboutAnswer(err error, said string, answers []Answer) error {
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		for _, a := range answers {
			switch {
			case strings.Contains(said, a.Folder):
				return errBuild{words.AsItStands(said)}
			case strings.Contains(said, "mine.go:"):
				return errBuild{words.Of("exercise.no-build", "folder", a.Folder, "func", a.Func, "said", said)}
			}
		}
	}
	return fmt.Errorf("exercise: build the shop: %w: %s", err, said)
}
