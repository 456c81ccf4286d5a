//go:build lab

package program

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/ladder"
)

// rungs lists the strategies of this shop with what they declare: with the tag lab, the ways that break, too.
var rungs = slices.Concat(ladder.All(), baskets.All(), ladder.Reservations())

var offered = ladder.Strategies(rungs)

// Offer adds strategies to those of the program. It is called before [Main].
func Offer(all ...ladder.Rung) {
	rungs = append(rungs, all...)
	offered = ladder.Strategies(rungs)
}

// describing says what the strategies declare.
type describing struct {
	JSON bool `name:"json" help:"What each one declares, as a list in JSON: the lab asks so."`
}

func (d describing) describe(to io.Writer) (done bool, err error) {
	if !d.JSON {
		return false, nil
	}
	out := json.NewEncoder(to)
	out.SetIndent("", "  ")
	return true, out.Encode(ladder.Describe(rungs))
}

type labSettings struct {
	labmode.Settings `embed:""`
}

func (l labSettings) check(addr string) error {
	if err := l.Settings.Check(addr); err != nil {
		return usageError{err}
	}
	return nil
}

// open opens the lab. It sends no traces, wherever they are collected.
func (l labSettings) open(_ context.Context, shopName string) (extension, error) {
	if collected() {
		slog.Warn("no trace is sent: the shop with the lab has no exporter, and the production shop has one")
	}
	opened, err := l.Settings.Open(shopName, rungs)
	if err != nil {
		return nil, usageError{err}
	}
	return opened, nil
}

// labCommands are the subcommands of the lab.
var labCommands = kong.Plugins{&struct {
	Resume resumeCommand `cmd:"" hidden:"" help:"Continue the stopped parent process after a time."`
}{}}

// resumeCommand is what a shop starts before it stops itself: see [labmode.ResumeCommand].
type resumeCommand struct {
	PID   int           `arg:""`
	After time.Duration `arg:""`
}

func (r *resumeCommand) Run() error { return labmode.Resume(r.PID, r.After) }
