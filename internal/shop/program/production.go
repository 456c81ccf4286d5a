//go:build !lab

package program

import (
	"io"

	"github.com/alecthomas/kong"

	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// offered lists the strategies of this shop.
var offered = strategy.All()

type describing struct{}

func (describing) describe(io.Writer) (done bool, err error) { return false, nil }

// labSettings has the one flag of the lab that a shop without it understands: to refuse it.
type labSettings struct {
	Lab struct {
		Lab bool `name:"lab" env:"LAB" hidden:""`
	} `embed:"" envprefix:"SHOP_"`
}

func (l labSettings) check(string) error {
	if l.Lab.Lab {
		return usage("--lab: this program was built without the lab: build it with go build -tags lab ./cmd/shop")
	}
	return nil
}

func (labSettings) open(string) (lab, error) { return lab{}, nil }

type lab struct{}

func (lab) store() []stock.Option { return nil }

func (lab) equip(*strategy.Deps) {}

func (lab) attach(*shop.Shop) {}

func (lab) Close() error { return nil }

// labCommands are the subcommands of the lab.
var labCommands kong.Plugins
