//go:build !lab

package program

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"stocklock/internal/shop/tracing"
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

// open opens the exporter of traces, if there is a collector.
func (labSettings) open(ctx context.Context, _ string) (extension, error) {
	if !collected() {
		return &tracing.Exporter{}, nil
	}
	exporter, err := tracing.Open(ctx)
	if err != nil {
		return nil, usageError{err}
	}
	return exporter, nil
}

// labCommands are the subcommands of the lab.
var labCommands kong.Plugins
