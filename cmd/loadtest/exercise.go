package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"stocklock/internal/lab/exercise"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
)

type exerciseCommand struct {
	Lesson        int `arg:"" optional:"" help:"The lesson whose exercise it is. Without one, all are listed."`
	redisSettings `embed:""`

	Hint  int  `type:"counter" help:"A hint. Repeat the flag for further ones."`
	From  int  `placeholder:"LESSON" help:"Go on with your code of an earlier exercise, of lessons 2 to 4."`
	Shell bool `help:"Start a Redis and a MySQL, and a shell in which redis-cli and mysql reach them without a flag: to type the transcripts of the course. It says how another terminal does."`
	Check bool `help:"Build the shop with your solution, and run what decides. Under a minute on a machine that has nothing else to do."`
}

// Help is shown under the flags.
func (*exerciseCommand) Help() string {
	return `Needs go in the PATH, and a checkout of stocklock. Each exercise is one Go file, which this command writes into the checkout.

    loadtest exercise            # list the exercises
    loadtest exercise 3          # begin that of lesson 3
    loadtest exercise 3 --from 2 # the same, with your code of lesson 2
    loadtest exercise 3 --hint   # a hint, and --hint --hint for one more
    loadtest exercise 3 --check  # is it solved?
    loadtest exercise --shell    # servers to type to
    docker compose run --rm --name typing lab exercise --shell   # and another terminal: docker exec -it typing bash

Exit codes: 0 solved, 1 not solved, 2 bad usage, 3 the harness failed, which says nothing about the solution.`
}

func (c *exerciseCommand) Run(ctx context.Context, s streams) error {
	switch {
	case c.Shell && (c.Lesson != 0 || c.Check || c.Hint > 0 || c.From != 0):
		return usage("--shell starts servers to type to: want no lesson, and no --check, --hint or --from")
	case c.Shell:
		return c.shell(ctx, s)
	case c.From != 0 && (c.Check || c.Hint > 0):
		return usage("--from begins an exercise: leave it out with --check and --hint")
	case c.Check && c.Hint > 0:
		return usage("want --check or --hint")
	}
	if c.Lesson == 0 {
		if c.Check || c.Hint > 0 || c.From != 0 {
			return usage("--check, --hint and --from want a lesson: %s exercise 3 --check", program())
		}
		for _, e := range exercise.All() {
			fmt.Fprintf(s.out, "%s exercise %d  %s\n", program(), e.Lesson, s.in().Say(e.Asks()))
		}
		return nil
	}
	e, err := exercise.Of(c.Lesson)
	if err != nil {
		return usage("%w", err)
	}
	if c.Hint > 0 {
		for i, hint := range e.Helps()[:min(c.Hint, len(e.Hints))] {
			fmt.Fprintf(s.out, "%d. %s\n", i+1, s.in().Say(hint))
		}
		return nil
	}
	root, err := exercise.Root()
	if err != nil {
		return usage("%w", err)
	}
	if !c.Check {
		return c.begin(s, e, root)
	}
	return c.check(ctx, s, e, root)
}

func (c *exerciseCommand) begin(s streams, e exercise.Exercise, root string) error {
	var from *exercise.Exercise
	if c.From != 0 {
		before, err := exercise.Of(c.From)
		if err != nil || c.From < exercise.FirstGrown || c.From >= e.Lesson || e.Lesson > exercise.LastGrown {
			return usage("--from %d: want an exercise before that of lesson %d, both of lessons %d to %d", c.From, e.Lesson, exercise.FirstGrown, exercise.LastGrown)
		}
		if _, err := os.Stat(filepath.Join(root, before.File())); err != nil {
			return usage("%s is not there: begin with %s exercise %d", before.File(), program(), before.Lesson)
		}
		from = &before
	}
	written, err := e.Write(root, from)
	if err != nil {
		return err
	}
	if from != nil && !written {
		return usage("%s is there already: move it away to go on with your code of lesson %d", e.File(), from.Lesson)
	}
	begun := "exercise.begun"
	if written {
		begun = "exercise.begin"
	}
	fmt.Fprintf(s.out, "%s\n%s\n%s\n", exerciseTitle(s, e), s.say(begun, "file", fromHere(root, e.File())), s.say("exercise.then", "program", program(), "n", e.Lesson))
	return nil
}

// fromHere is a file of the checkout as a command can name it in the working directory.
func fromHere(root, file string) string {
	file = filepath.Join(root, file)
	here, err := os.Getwd()
	short, apart := filepath.Rel(here, file)
	if _, gone := os.Stat(short); errors.Join(err, apart, gone) != nil { // a link can lead here
		return file
	}
	if filepath.Base(short) == short { // it would be looked for in the PATH
		return "." + string(filepath.Separator) + short
	}
	return short
}

func exerciseTitle(s streams, e exercise.Exercise) string {
	return s.say("exercise.title", "n", e.Lesson, "task", e.Asks())
}

func (c *exerciseCommand) check(ctx context.Context, s streams, e exercise.Exercise, root string) error {
	if _, err := os.Stat(filepath.Join(root, e.File())); errors.Is(err, os.ErrNotExist) {
		return usage("%s is not there: %s exercise %d writes it", e.File(), program(), e.Lesson)
	}
	// The program stays, so that a schedule that fails can be played again.
	shop := filepath.Join(root, e.Folder(), "shop")
	fmt.Fprintln(s.out, exerciseTitle(s, e))
	built := s.late("compiling the shop")
	err := exercise.Build(ctx, root, shop, e.Mine())
	built()
	if said, not := exercise.Compiler(err); not {
		fmt.Fprintf(s.out, "  %s\n%s\n", s.say("exercise.does-not-build"), s.in().Say(said))
		return errSurprised
	}
	if err != nil {
		return err
	}
	done := func(step words.Text) {
		s.moving("")
		fmt.Fprintln(s.out, "  "+s.say("exercise.holds", "what", step))
	}
	done(words.Of("exercise.builds"))
	checker, err := exercise.Open(ctx, shop)
	if err != nil {
		return err
	}
	defer checker.Close()
	checker.RedisServer = string(c.RedisServer)
	if isTerminal(s.err) {
		checker.Progress = func(step words.Text, done, left int) {
			s.moving(s.say("explore.progress", "name", step, "done", done, "left", left))
		}
	}
	v, err := checker.Check(ctx, e.Mine(), done)
	s.moving("")
	if err != nil {
		return err
	}
	if v.Solved {
		fmt.Fprintln(s.out, s.say("exercise.solved"))
		return nil
	}
	fmt.Fprintf(s.out, "  %s\n\n%s\n", s.say("exercise.fails", "cause", v.Cause), s.in().Say(v.Said))
	for _, line := range v.Story {
		fmt.Fprintln(s.out, "  "+s.in().Say(line))
	}
	if v.Record != nil {
		if again := v.StepCommand(program()); again != "" {
			fmt.Fprintf(s.out, "%s --shop-binary %s --draw\n\n", again, fromHere(root, filepath.Join(e.Folder(), "shop")))
		}
		schedule.Draw(s.out, s.in(), *v.Record, widthOf(s.out))
	}
	return errSurprised
}
