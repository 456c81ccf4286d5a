// Command peerspage makes docs/peers.md from measurements: what scenarios did to the locks of other
// libraries and to this repository's own, and how fast they are. See make peers.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"stocklock/bench/peers"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
)

type options struct {
	Strategies bool     `help:"Only print the strategies that are compared, for a word of loadtest run."`
	Failing    bool     `help:"Only print the cells of --cells that did not hold or were to fail, as words of loadtest run."`
	Cells      string   `type:"existingfile" placeholder:"FILE" help:"The result of every strategy under every scenario."`
	Again      string   `type:"existingfile" placeholder:"FILE" help:"The result of the cells that did not hold, run again with other seeds."`
	Sales      string   `type:"existingfile" placeholder:"FILE" help:"The result of every strategy under contention without work in the section."`
	Explored   []string `type:"existingfile" placeholder:"FILE" help:"What explore --out wrote, once for each."`
	Keep       string   `type:"path" placeholder:"FOLDER" help:"Only keep there what the page needs of --cells, --again, --sales and --explored."`
	From       string   `type:"path" placeholder:"FOLDER" help:"Make the page of what --keep wrote, and of FOLDER.txt, where scripts/measure.sh keeps what the bench measured."`
	To         string   `type:"path" placeholder:"FILE" help:"Where to write the page. Without it standard output."`
}

func main() {
	var o options
	parser := kong.Must(&o, kong.Name("peerspage"), kong.Description("Makes docs/peers.md from measurements: see make peers."))
	_, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	if err := o.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peerspage:", err)
		os.Exit(1)
	}
}

func (o options) run(stdout io.Writer) error {
	if o.Strategies {
		_, err := fmt.Fprintln(stdout, strings.Join(compared(), ","))
		return err
	}
	if o.Failing {
		cells, err := report.Read(o.Cells)
		if err == nil {
			_, err = fmt.Fprintln(stdout, strings.Join(failing(cells), " "))
		}
		return err
	}
	if o.Keep != "" {
		return o.keep()
	}
	in, err := kept(o.From)
	if err != nil {
		return err
	}
	p := pageOf(in)
	if o.To == "" {
		return p.write(stdout)
	}
	return wholefile.Write(o.To, p.write)
}

// compared lists the strategies in the order of the page.
func compared() []string {
	var names []string
	for _, p := range peers.Compared() {
		names = append(names, p.Name)
	}
	return names
}

// failing lists the cells that were run and did not hold, or were to fail.
func failing(r report.Report) []string {
	var cells []string
	for _, c := range r.Cells {
		if (c.Verdict != verdict.Held || c.Surprise()) && c.Verdict != verdict.Skipped && c.Verdict != verdict.Inapplicable {
			cells = append(cells, c.Name())
		}
	}
	return cells
}
