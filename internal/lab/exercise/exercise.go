// Package exercise has the exercises of the course, and checks a pupil's solutions.
//
// An exercise is one Go file: package mine, with a function Build that makes a strategy.
// [Exercise.Write] puts its beginning into the checkout. [Build] builds the lab's shop with it, as
// the strategy mine. A [Checker] decides by explorations and by a crowd whose outcome does not depend
// on the machine, and never by measured times.
//
// The folders lesson1, lesson2 and so on have the beginning of each exercise (start), and answers
// to it (answers.diff): solutions (right-...) and usual wrong answers (wrong-CAUSE-...), as edits,
// with the schedule that shows each. The tests check that each one does what its name says.
//
// # Decisions
//
// A wrong answer to an exercise is an edit. It changes a few lines of the start or of a right
// answer, and names the cause that the check must find. So it differs from what holds only in its
// mistake. It is kept with the schedule that shows it. make test plays these schedules; make
// nightly searches for them.
//
// Exercises are decided by schedules and by a crowd. Where a lease can end, a failure counts only if
// it shows with a longer lease, too. A search for which the machine was too slow is made again with
// that lease. The locks of a crowd outlast the crowd. Where sales are to share commits, the item's row is
// locked until all customers are at the shop.
package exercise

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// Exercise is what a pupil is to do after a lesson, and what decides whether it is done.
type Exercise struct {
	Lesson int
	Task   string   // one sentence
	Hints  []string // each says more than the one before
	// Properties are those that a solution has. What it lacks is not asked for.
	Properties declared.Properties
	Searches   []Search
	// GuardAlone says that the check sells with ReadThenWrite under the guard of a solution. Its lock decides:
	// a statement of an earlier exercise would sell right without one.
	GuardAlone bool
	// WithoutRedis says that no sale may ask Redis for anything.
	WithoutRedis bool
	// LooksUp says that a customer whose order stands is to be answered as sold, although an answer
	// was lost.
	LooksUp bool
	// Baskets are the cells of sales of several items that must hold, in their order. They come after the
	// crowd.
	Baskets []trial.Scenario
	// MaxCommits bounds the commits of writing transactions for each sale to a crowd that waits. 0 is
	// no bound.
	MaxCommits float64
}

// Search is one exploration that decides, or one schedule.
type Search struct {
	// Play is a schedule that must hold, in the place of all, with a customer alone for its next step, whatever that is:
	// "A wait kill:A".
	Play      string
	Event     schedule.Event // that may happen; empty for none
	InARow    int            // so often at one place; 0 for once
	Twice     bool           // at any two places
	Customers int
	Switches  int // 0 for no bound
	OneShop   bool
	// Allowed are the causes that the exercise does not ask about.
	Allowed []verdict.Cause
}

// text names a search in a few words.
func (s Search) text() words.Text {
	if s.Play != "" {
		return words.AsItStands(s.Play)
	}
	var switches, shop, event, row words.Text
	if s.Switches > 0 {
		switches = words.Of("search.switches", "n", s.Switches)
	}
	if s.OneShop {
		shop = words.Of("search.one-shop")
	}
	if s.Event != "" {
		event = words.Of("search.event", "event", s.Event)
	}
	switch {
	case s.InARow > 1:
		row = words.Of("search.in-a-row", "n", s.InARow)
	case s.Twice:
		row = words.Of("search.twice")
	}
	return words.Of("search", "customers", s.Customers, "switches", switches, "shop", shop, "event", event, "row", row)
}

// Asks is the task.
func (e Exercise) Asks() words.Text {
	return words.Text{Key: fmt.Sprintf("task.%d", e.Lesson), Words: e.Task}
}

// Helps are the hints, each of which says more than the one before.
func (e Exercise) Helps() (hints []words.Text) {
	for i, hint := range e.Hints {
		hints = append(hints, words.Text{Key: fmt.Sprintf("hint.%d.%d", e.Lesson, i+1), Words: hint})
	}
	return hints
}

// inDatabase are the properties of what only MySQL keeps apart.
var inDatabase = declared.Properties{
	Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.ClockFree | declared.StorageChecked,
	NotApplicable: declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease | declared.Reentrant |
		declared.LossAware | declared.SurvivesDataLoss | declared.PauseProof,
}

// leased are the properties of a lock that ends by itself.
const leased = declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree

// leasedAndFenced are those of the reference lock with a fence.
var leasedAndFenced = declared.Properties{Has: leased | declared.OwnerChecked | declared.AtomicRelease | declared.Renews | declared.Reentrant |
	declared.LossAware | declared.StorageChecked}

var exercises = []Exercise{
	{
		Lesson: 1, Task: "lose no update: have MySQL keep two sales apart, without a lock in Redis",
		Hints: []string{
			"Which statement decides, and what had the other sale read by then?",
			"A statement that both checks and subtracts needs no earlier read. A SELECT that locks the row is a second way.",
			"WHERE stock >= ? in the UPDATE, and look at the number of rows that it matched. Or SELECT ... FOR UPDATE first, in the same transaction.",
		},
		Properties:   inDatabase,
		WithoutRedis: true,
		Searches:     []Search{{Customers: 2}, {Customers: 3, Switches: 3}},
	},
	{
		Lesson: 2, Task: "make the lock expire, whenever its holder dies",
		Hints: []string{
			"Between two commands, the process can die. How many commands does acquire send?",
			"One command sets the key and its expiry: SET with NX and PX.",
			"l.Redis.SetNX(ctx, key, 1, l.Lease): with a lease, go-redis sends SET with NX and PX, or EX for whole seconds.",
		},
		Properties: declared.Properties{Has: leased, NotApplicable: declared.AtomicRelease},
		GuardAlone: true,
		Searches: []Search{{Customers: 2}, {Customers: 2, Event: schedule.Kill},
			// Two who find a dead holder's deadline at once.
			{Play: "A kill:A wait B C B C B C B C B C B C"}},
	},
	{
		Lesson: 3, Task: "free your own lock, and nobody else's",
		Hints: []string{
			"What does the key have to hold, so that a release can see whose lock it is?",
			"A new random value for each acquisition, such as crypto/rand's Text: containers share pids and counters. The check and the delete must be one step for Redis.",
			"Eval: if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
		},
		Properties: declared.Properties{Has: leased | declared.OwnerChecked | declared.AtomicRelease},
		GuardAlone: true,
		Searches: []Search{{Customers: 2}, {Customers: 2, Event: schedule.Kill},
			{Customers: 3, Switches: 2, Event: schedule.Wait, Allowed: []verdict.Cause{verdict.Overrun}},
			{Customers: 3, Switches: 2, Event: schedule.Wait, OneShop: true, Allowed: []verdict.Cause{verdict.Overrun}}},
	},
	{
		Lesson: 4, Task: "keep the lock for as long as the work takes, and stop the work when the lock is lost",
		Hints: []string{
			"Who renews, how often, and what ends it when the sale has ended?",
			"A goroutine with a ticker of a third of the lease, and a context that it cancels. A renewal must check the owner, as a release does.",
			"Where Redis does not answer, the lease goes on ending: cancel the work before the lease that the last answer gave is over, counted from before that request was sent.",
		},
		Properties: declared.Properties{Has: leased | declared.OwnerChecked | declared.AtomicRelease | declared.Renews | declared.LossAware},
		// With three customers, one has sold before another one dies: its watchdog must have ended.
		GuardAlone: true,
		Searches: []Search{{Customers: 2}, {Customers: 2, Event: schedule.Wait}, {Customers: 2, Switches: 1, Event: schedule.Wait, InARow: 3},
			{Customers: 2, Event: schedule.Kill}, {Customers: 3, Switches: 1, Event: schedule.Kill}, {Customers: 2, Event: schedule.Cut},
			// The lock of one who dies after a renewal must end, too, and who has lost the lock must know it
			// one lease later.
			{Play: "A wait kill:A"}, {Play: "A forget B wait A B"}},
	},
	{
		Lesson: 5, Task: "let no overtaken holder overwrite a sale",
		Hints: []string{
			"What has the new holder read when the old one writes?",
			"Three steps: close the door, look into the room, write.",
			"store.RaiseFence, then store.Read and item.Take, then store.WriteFenced.",
		},
		Properties: leasedAndFenced,
		Searches:   []Search{{Customers: 2}, {Customers: 2, Event: schedule.Pause}, {Customers: 2, Event: schedule.Forget}},
	},
	{
		Lesson: 6, Task: "lose no unit, promise none, and know what became of a sale whichever answer is lost",
		Hints: []string{
			"How many transactions does a sale have, and what is true between them?",
			"One transaction for the unit and the order. Choose the order's id before it is sent.",
			"After an error at COMMIT, look for that id. Found is sold. Not found proves nothing yet: answer unknown, or try again under the same id, and look again.",
		},
		Properties: inDatabase,
		LooksUp:    true,
		Searches: []Search{{Customers: 2}, {Customers: 2, Event: schedule.Kill}, {Customers: 3, Switches: 2, Event: schedule.Lose},
			// The answer to the COMMIT, and that of the look.
			{Customers: 2, Switches: 1, Event: schedule.Lose, Twice: true}},
	},
	{
		Lesson: 7, Task: "sell with at most half a commit for each sale, and promise nothing before its commit",
		Hints: []string{
			"What costs a COMMIT, and how many sales can share one?",
			"The first that comes leads: it collects those that wait, and commits for all. Each is answered after that COMMIT.",
			"While a transaction commits, those who come are the next batch. Refuse as sold out only what a read in that transaction has shown.",
		},
		Properties: inDatabase,
		// At one shop, an answer is lost while another sale waits for the one that leads.
		Searches:   []Search{{Customers: 2}, {Customers: 2, Event: schedule.Kill}, {Customers: 2, OneShop: true, Event: schedule.Lose}},
		MaxCommits: 0.5,
	},
	{
		Lesson: 8, Task: "let no sale read a stock that another is about to change, with a lock that is right already",
		Hints: []string{
			"In which order do the lock, BEGIN, COMMIT and the release come?",
			"Release the lock when the COMMIT has been answered, and begin the transaction when the lock is there.",
			"Or let the row decide: SELECT ... FOR UPDATE.",
		},
		Properties: declared.Properties{Has: leased | declared.OwnerChecked | declared.AtomicRelease | declared.Renews | declared.Reentrant | declared.LossAware},
		Searches:   []Search{{Customers: 2}, {Customers: 3, Switches: 2}},
	},
	{
		Lesson: 9, Task: "sell baskets: refuse no units that are there, sell none twice, and lose none",
		Hints: []string{
			"Draw who has which item, and who waits for which. Which order leaves no circle?",
			"Sort by the item's id, and make two lines of one item one before anything is checked.",
			"All lines in one transaction: what is not committed is not lost when the process dies.",
		},
		Properties: declared.Properties{Has: leased | declared.OwnerChecked | declared.AtomicRelease | declared.Renews | declared.Reentrant | declared.LossAware},
		Baskets: []trial.Scenario{scenario.Meeting, basketCell("same-item-twice"), basketCell("death-between-lines"),
			basketCell("one-sold-out"), scenario.Beside},
	},
	{
		Lesson: 10, Task: "sell no unit twice where reads go to a replica that is late, and let no overtaken holder overwrite a sale",
		Hints: []string{
			"Which server answers the read, which one takes the write, and which of them knows the last sale?",
			"Read where you write. A transaction goes to the primary as a whole, and a statement that subtracts reads the row itself.",
			"store.DecrementFenced. Or RaiseFence, and then tx.Lock and tx.WriteFenced in store.Transact.",
		},
		Properties: leasedAndFenced,
		Searches:   []Search{{Customers: 2}, {Customers: 2, Event: schedule.Lag}, {Customers: 2, Event: schedule.Pause}},
	},
}

func basketCell(name string) trial.Scenario {
	s, err := scenario.ByName(name)
	if err != nil {
		panic(err)
	}
	return s
}

// All returns the exercises in the order of the lessons.
func All() []Exercise { return append([]Exercise(nil), exercises...) }

// Of returns the exercise of a lesson. The error lists the lessons that have one.
func Of(lesson int) (Exercise, error) {
	var lessons []string
	for _, e := range exercises {
		if e.Lesson == lesson {
			return e, nil
		}
		lessons = append(lessons, fmt.Sprint(e.Lesson))
	}
	return Exercise{}, fmt.Errorf("lesson %d has no exercise: want one of %s", lesson, strings.Join(lessons, ", "))
}

//go:embed lesson*/start/mine.go
var starts embed.FS

// Folder is where a pupil works, below the checkout.
func (e Exercise) Folder() string { return filepath.Join("exercises", e.name()) }

// File is the file in which a pupil works, below the checkout.
func (e Exercise) File() string { return filepath.Join(e.Folder(), "mine.go") }

func (e Exercise) name() string { return fmt.Sprintf("lesson%d", e.Lesson) }

// The lessons of the program that grows: the lock of each goes on with that of the one before. The other exercises begin
// alone.
const (
	FirstGrown = 2
	LastGrown  = 4
)

// Write puts the beginning of the exercise into the checkout. With an earlier exercise, it is the pupil's own
// code of that, under this exercise's task. If the pupil has begun, it leaves the file as it is and returns false.
func (e Exercise) Write(root string, from *Exercise) (written bool, err error) {
	content, err := starts.ReadFile(e.name() + "/start/mine.go")
	if err != nil {
		return false, err
	}
	if from != nil {
		before, err := os.ReadFile(filepath.Join(root, from.File()))
		if err != nil {
			return false, err
		}
		content = slices.Concat(content[:code(content)], before[code(before):])
	}
	if err := os.MkdirAll(filepath.Join(root, e.Folder()), 0o755); err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(root, e.File()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = file.Write(content)
	return true, errors.Join(err, file.Close())
}

// code is where the code of a file begins, behind what its comment says.
func code(file []byte) int { return max(bytes.Index(file, []byte("package mine")), 0) }

// ErrNoCheckout means that an exercise needs what is not there: Go, and a checkout of stocklock.
var ErrNoCheckout = errors.New("exercises need go in the PATH, and a checkout of stocklock: clone it, and run this in it")

// Root returns the folder of the checkout that the working directory is in, or [ErrNoCheckout].
func Root() (string, error) {
	root, err := rig.ModuleRoot()
	if _, noGo := exec.LookPath("go"); errors.Join(err, noGo) != nil {
		return "", ErrNoCheckout
	}
	return root, nil
}
