//go:build lab

package program

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/shop"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/ladder"
)

// rungs lists the strategies of this shop with what they declare: with the tag lab, the ways that break, too.
var rungs = slices.Concat(ladder.All(), baskets.All())

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

func (l labSettings) open(shopName string) (lab, error) {
	opened, err := l.Settings.Open(shopName)
	if err != nil {
		return lab{}, usageError{err}
	}
	return lab{opened}, nil
}

type lab struct{ *labmode.Opened }

func (l lab) store() []stock.Option { return l.Opened.StoreOptions() }

func (l lab) equip(deps *strategy.Deps) { l.Opened.Equip(deps) }

func (l lab) attach(s *shop.Shop) { l.Opened.Attach(s, rungs) }

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
