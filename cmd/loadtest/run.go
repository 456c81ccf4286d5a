package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/strategy/declared"
)

type runCommand struct {
	Words    []string `arg:"" optional:"" name:"word" help:"What to run: a STRATEGY under contention, a SCENARIO or a GROUP with all that it applies to, or STRATEGY:SCENARIO. Without one: ${usual}."`
	Runs     int      `default:"1" min:"1" max:"1000" help:"How often to run each cell, each time with another seed."`
	Parallel *int     `placeholder:"N" min:"1" max:"16" help:"How many cells to run at once, each with shops and a Redis of its own. Without it 1 under contention, where numbers are compared, and 4 for the other scenarios. Of topologies, how many scenarios with all their strategies: 4."`
	settings `embed:""`

	reportOutputs `embed:""`
	Draw          bool   `help:"Say why a cell broke, or what prevented that, and draw it. Of several cells, explain those that broke: the first of each cause."`
	From          string `placeholder:"FILE" help:"With --draw: take the cell from this saved result, which --out wrote, and run nothing."`
	ExpectOnly    bool   `help:"Only print what is expected of each cell."`
}

// Help is shown under the flags.
func (*runCommand) Help() string {
	return `A strategy is a way to sell, as a workload is in Jepsen, and a scenario what is done to it meanwhile, as a nemesis is.
A cell is a strategy under a scenario. Words choose cells:

    none setnx                    these strategies under contention
    pause                         every strategy under this scenario
    none:pause                    one cell
    none,setnx:pause,crash        four cells
    conditional:all               one strategy under every scenario of one server
    all                           every strategy under each of these: the matrix
    telling                       each strategy under the scenario that shows most about it
    baskets topologies            groups of scenarios that have servers of their own
    everything                    all cells of all groups

The groups are ` + strings.Join(scenario.Groups()[1:], ", ") + `.

Examples:

    loadtest run none conditional --rate 500 --out out/result.json
    loadtest run all --out out/report.html --out out/junit.xml
    loadtest run set-ex-nx:pause --draw                          # why does it oversell? step by step
    loadtest run set-ex-nx:pause --draw --from out/result.json   # of that saved result
    loadtest run fenced --fail-if 'oversold>0' --fail-if 'p99>500ms'
    loadtest run conditional --rate 200..2000/30s --out out/requests.gob   # every request, for vegeta report and plot
    loadtest run --out - | jq '.cells[].verdict'
    loadtest run --mysql 'user:secret@tcp(db:3306)/stocklock' --shop http://shop1:8080 --shop http://shop2:8080`
}

// requestsEnd is the end of the name of a file with every request, in the format of vegeta report and vegeta plot.
const requestsEnd = ".gob"

func (c *runCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	if len(c.Words) == 0 {
		c.Words = cells.Usual
	}
	if c.From != "" {
		return c.saved(s, parsed)
	}
	plan, err := c.plan()
	if err != nil {
		return err
	}
	plan.Runs, plan.Parallel = c.Runs, given(c.Parallel)
	if err := c.check(requestsEnd); err != nil {
		return err
	}
	if len(c.named(requestsEnd)) > 1 {
		return usage("--out: want one file with requests")
	}
	if c.ExpectOnly {
		return c.expect(ctx, plan, s, parsed)
	}
	shop, plan, err := askShop(ctx, c.shopSettings, s, func(shop *catalog.Catalog) (matrix.Plan, error) { return c.choose(plan, shop, parsed) })
	if err != nil {
		return err
	}
	defer shop.Close()
	var requests *wholefile.File
	for _, path := range c.named(requestsEnd) {
		if requests, err = wholefile.Create(path); err != nil {
			return usage("%w", err)
		}
		defer requests.Discard()
		plan.Records = load.NewRecords(requests)
	}
	r, failed := measure(ctx, plan, shop, s)
	if failed != nil && len(r.Cells) == 0 {
		return failed
	}
	var unkept error // of the requests: the cells are still shown and written
	if requests != nil {
		if unkept = plan.Records.Flush(); unkept == nil {
			unkept = requests.Commit()
		}
	}
	people := c.beside(s)
	one := c.Draw && len(plan.Pairs) == 1 && plan.Runs == 1
	switch {
	case one && len(r.Cells) == 1:
		people.terminal().Explain(r.Cells[0])
		if failed == nil {
			failed = search(ctx, plan.Pairs[0], shop, c.servers, people)
		}
	case c.Draw:
		people.terminal().Drawings(r)
		fallthrough
	default:
		people.terminal().Report(r)
	}
	if ctx.Err() != nil {
		failed = nil // the report says so where cells are missing
	}
	err = c.finish(r, s, unkept)
	if failed != nil { // the cells that were run before are still shown and written
		if errors.Is(err, errSurprised) {
			return failed
		}
		return errors.Join(failed, err)
	}
	if !one {
		explained := func(of trial.Result) string { return explaining(of, plan.OneServer(), shop.Given) }
		if files := c.named(".json"); len(files) > 0 {
			explained = func(of trial.Result) string { return fromFile(of, files[0]) }
		}
		people.terminal().Next(r, explained, program()+" run all"+flagOf("--shop-binary", shop.Given)+flagOf("--redis-server", plan.RedisServer))
	}
	return err
}

// drawnBy has the event under which two customers show that a property is missing. Of the other properties
// no schedule of two different orders shows it.
var drawnBy = map[declared.Property][]schedule.Event{
	declared.Crossable: nil, declared.Whole: {schedule.Kill}, declared.OvertakeProof: {schedule.Pause},
}

// search looks for the shortest schedule of two customers that fails for the reason for which a cell of several items
// fails, and draws it.
func search(ctx context.Context, of matrix.Pair, shop *catalog.Catalog, started servers, s streams) error {
	way := of.Strategy
	events, drawn := drawnBy[of.Scenario.Attacks]
	circles := len(events) > 0 && !way.Baskets.Meets(declared.Crossable) // each schedule with an event would show a circle
	if !of.Scenario.OfBaskets() || !drawn || circles || way.Baskets.Meets(of.Scenario.Attacks) || !step.Unplayable(way).IsZero() {
		return nil
	}
	stage := stageSettings{servers: started, Lease: stageLease}
	on, err := stage.open(ctx, s, shop, 0, way)
	if err != nil {
		return err
	}
	defer on.Close()
	fmt.Fprintln(s.out)
	asked := survey.Plan{Strategy: way.Name, Sales: salesOf(asBaskets), Customers: 2, Events: events, Switches: len(events)}
	return asked.Run(ctx, on, progress(s), func(r survey.Result) {
		s.moving("")
		printResult(s, r, stage.again())
	})
}

// saved explains a cell of a saved result.
func (c *runCommand) saved(s streams, parsed *kong.Context) error {
	for _, at := range parsed.Path {
		if at.Flag != nil && !slices.Contains([]string{"from", "draw", "lang"}, at.Flag.Name) {
			return usage("--%s is for a cell that is run, and --from runs none", at.Flag.Name)
		}
	}
	if !c.Draw || len(c.Words) != 1 {
		return usage("--from explains one cell of a saved result: want run STRATEGY:SCENARIO --draw --from %s", quoted(c.From))
	}
	r, err := report.Read(c.From)
	if err != nil {
		return usage("%w", err)
	}
	name := c.Words[0]
	if !strings.Contains(name, ":") {
		name += ":" + trial.Contention // as a strategy is run
	}
	i := slices.IndexFunc(r.Cells, func(cell trial.Result) bool { return cell.Name() == name })
	if i < 0 {
		return usage("%s has no cell %s: %s report %s lists those that it has", c.From, name, program(), quoted(c.From))
	}
	s.terminal().Explain(r.Cells[i])
	if r.Cells[i].Surprise() {
		return errSurprised
	}
	return nil
}

// expect prints what is expected of each cell.
func (c *runCommand) expect(ctx context.Context, plan matrix.Plan, s streams, parsed *kong.Context) error {
	if flag := among([]string{"runs", "parallel", "out", "format", "fail-if", "draw"}, parsed); flag != "" {
		return usage("%s is for cells that are run, and --expect-only runs none", flag)
	}
	if len(c.MySQLSet) > 0 {
		return usage("--expect-only starts no MySQL, and what --mysql-set changes is asked of it")
	}
	shop, err := c.known(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if plan, err = c.choose(plan, shop, parsed); err != nil {
		return err
	}
	s.terminal().Expected(plan.Expected())
	return nil
}

// choose completes a plan with the cells that are asked for. The flags on the command line must be theirs.
func (c *runCommand) choose(plan matrix.Plan, shop *catalog.Catalog, parsed *kong.Context) (_ matrix.Plan, err error) {
	if plan, err = choose(plan, c.Words, shop); err != nil {
		return plan, err
	}
	if ofAFew(plan) && len(c.named(requestsEnd)) > 0 {
		return plan, usage("the scenarios of baskets, reservations and topologies measure no requests: want --out with another end than %s", requestsEnd)
	}
	if len(plan.Given) > 0 && among([]string{"shops"}, parsed) != "" {
		return plan, usage("--shops is for shops that loadtest starts: --shop (LOADTEST_SHOP) has given %d", len(plan.Given))
	}
	return plan, refuseSet(parsed, plan)
}

// refuseSet refuses flags on the command line for what the scenarios of a few customers set themselves, where
// there are no others.
func refuseSet(parsed *kong.Context, plan matrix.Plan) error {
	set := []string{"shops", "stock", "requests", "workers", "rate", "lease", "wait", "retry", "work", "mysql-set"}
	for _, p := range plan.Pairs {
		switch {
		case p.Scenario.Few == nil:
			return nil
		case p.Scenario.Topology == nil:
			set = append(slices.DeleteFunc(set, func(flag string) bool { return flag == "mysql-set" }), "parallel")
		}
	}
	if flag := among(set, parsed); flag != "" {
		return usage("%s is set by the scenarios of baskets, reservations and topologies: leave it out", flag)
	}
	return nil
}

// among is the first flag on the command line that is one of these, empty for none.
func among(flags []string, parsed *kong.Context) string {
	for _, at := range parsed.Path {
		if at.Flag != nil && slices.Contains(flags, at.Flag.Name) {
			return "--" + at.Flag.Name
		}
	}
	return ""
}

// measure runs a plan on shops of the catalog's program. When ctx ends it, the report has what there is.
func measure(ctx context.Context, plan matrix.Plan, shop *catalog.Catalog, s streams) (report.Report, error) {
	status := matrix.NewStatus(s.err, movingWidth(s.err))
	defer status.Close()
	plan.Shop = shop.Program
	r, err := matrix.Run(ctx, plan, status)
	if address, ok := errors.AsType[*matrix.AddressError](err); ok {
		return r, usage("--%w", address)
	}
	r.Interrupted = r.Interrupted || err != nil
	r.Environment.Command = commandLine(s.args)
	one := plan.OneServer()
	for i, c := range r.Cells {
		r.Cells[i].Replay = replay(c, one, shop.Given)
	}
	return r, err
}
