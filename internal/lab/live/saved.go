package live

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/pages"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// answers are what a saved page asks for, by the addresses under which a server would answer it.
type answers map[string]any

// runsInABlock is of how many runs the answers are compressed together. A page opens what it shows alone.
const runsInABlock = 64

// Save writes a report as the page itself, with its results in it. The file needs neither a server nor the network.
func Save(r report.Report, w io.Writer) error {
	runs, loads := savedRuns(r)
	blocks := []answers{{"api/catalog": savedMenu(r), "state": state{Runs: runs, Loads: loads, Predictions: []prediction{}}}}
	for of := range slices.Chunk(runs, runsInABlock) {
		block := answers{}
		for _, run := range of {
			block[fmt.Sprintf("api/runs/%d", run.ID)] = newDetail(*run, besides(*run, runs))
		}
		blocks = append(blocks, block)
	}
	return savePage(w, blocks)
}

// SaveTried writes the result of a try likewise.
func SaveTried(t report.Tried, w io.Writer) error {
	m := emptyMenu(savedInfo{Time: t.Time})
	m.Tried = triedInfos([]report.Tried{t})
	return savePage(w, []answers{{"api/catalog": m, "api/tried/1": t, "state": state{Predictions: []prediction{}}}})
}

// savedInfo is what a saved page says of its result as a whole.
type savedInfo struct {
	Time        string        `json:"time"`
	Interrupted bool          `json:"interrupted"`
	Facts       []report.Fact `json:"facts"`
}

// savedRuns are the cells of a report as runs, and those that may be compared once more as a comparison.
func savedRuns(r report.Report) (runs []*run, loads []*comparison) {
	add := func(c trial.Result, load int) {
		run := &run{ID: len(runs) + 1, cellName: cellName{c.Strategy, c.Scenario}, Seed: c.Seed, Load: load}
		run.conclude(c)
		run.told = c.Story
		runs = append(runs, run)
	}
	for _, c := range r.InOrder() {
		add(c, 0)
	}
	if compared, others := r.Compared(); len(compared) > 0 {
		of := &comparison{ID: 1, Shape: r.Environment.Rate, Stock: compared[0].InitialStock, Seed: r.Environment.Seed, Beside: r.Environment.Testbeds, Others: others}
		loads = append(loads, of)
		for _, c := range compared {
			of.Strategies = append(of.Strategies, c.Strategy)
			add(c, of.ID)
		}
	}
	return runs, loads
}

// savedMenu is a menu of the cells that a report has.
func savedMenu(r report.Report) menu {
	m := emptyMenu(savedInfo{Time: r.Environment.Time, Interrupted: r.Interrupted, Facts: r.Environment.Facts()})
	only := func(named string) func(string) bool { return func(group string) bool { return group == named } }
	m.Baskets.Strategies, m.Baskets.Scenarios = savedGroup(r, only(trial.Baskets))
	m.Reservations.Strategies, m.Reservations.Scenarios = savedGroup(r, only(trial.Reservations))
	m.Strategies, _ = savedGroup(r, func(group string) bool { return group != trial.Baskets && group != trial.Reservations })
	_, m.Scenarios = savedGroup(r, only(trial.OneServer))
	for _, of := range topology.All {
		info := topologyInfo{Name: of.Name, Doc: of.Doc}
		if _, info.Scenarios = savedGroup(r, only(of.Name)); len(info.Scenarios) > 0 {
			m.Topologies = append(m.Topologies, info)
		}
	}
	for _, v := range verdict.All {
		if slices.ContainsFunc(r.Cells, func(c trial.Result) bool { return c.Verdict == v.Kind }) {
			m.Verdicts = append(m.Verdicts, v.Kind)
		}
	}
	return m
}

// emptyMenu is a menu of nothing.
func emptyMenu(of savedInfo) menu {
	return menu{Outcomes: outcomes(), Strategies: []strategyInfo{}, Scenarios: []scenarioInfo{}, Baskets: groupMenu{[]strategyInfo{}, []scenarioInfo{}}, Reservations: groupMenu{[]strategyInfo{}, []scenarioInfo{}},
		Topologies: []topologyInfo{}, Verdicts: []verdict.Kind{}, Shapes: []load.Form{}, Saved: &of}
}

// savedGroup are the strategies and scenarios of the cells of some groups, with what was expected.
func savedGroup(r report.Report, of func(group string) bool) ([]strategyInfo, []scenarioInfo) {
	cells := slices.DeleteFunc(slices.Clone(r.Cells), func(c trial.Result) bool { return !of(c.Group) })
	strategies, scenarios := r.Places(cells)
	ways, cases := []strategyInfo{}, []scenarioInfo{}
	for _, s := range strategies {
		ways = append(ways, strategyInfo{Name: s.Name, Doc: s.Doc, Guard: s.Guard, Decrement: s.Decrement})
	}
	for _, s := range scenarios {
		info := scenarioInfo{Name: s.Name, Doc: s.Doc, Attacks: s.Attacks.String(), Expected: map[string]verdict.Kind{}}
		for _, c := range cells {
			if c.Scenario == s.Name {
				info.Expected[c.Strategy] = c.Expected
			}
		}
		cases = append(cases, info)
	}
	return ways, cases
}

// savePage writes the page with answers in it, in blocks: the first one what every view needs, each further one some
// runs.
func savePage(w io.Writer, blocks []answers) error {
	for _, l := range words.Languages {
		blocks[0]["words/"+l.String()+".json"] = l.Messages()
	}
	script := joined("app")
	var data strings.Builder
	from := 0 // the number of a block's first run
	for i, block := range blocks {
		zipped, err := zippedJSON(block)
		if err != nil {
			return err
		}
		fmt.Fprintf(&data, "<script type=\"application/gzip\" data-from=\"%d\">%s</script>\n", from, zipped)
		from = i*runsInABlock + 1
	}
	index, style := pageFile("index.html"), string(pages.Base())+pageFile("style.css")
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'">`
	_, err := strings.NewReplacer(
		`<link rel="stylesheet" href="base.css">`, fmt.Sprintf(policy, hash(script), hash(style)),
		`<link rel="stylesheet" href="style.css">`, "<style>"+style+"</style>",
		`<script type="module" src="app.js"></script>`, `<script type="module">`+script+`</script>`,
		`</body>`, data.String()+`</body>`,
	).WriteString(w, index)
	return err
}

// The forms in which the scripts of the page import and export. A line of another form panics.
var (
	imported = regexp.MustCompile(`(?m)^import \{([^}]*)\} from '\./(\w+)\.js';$`)
	exported = regexp.MustCompile(`(?m)^export ((?:const|async function|function) (\w+))`)
	another  = regexp.MustCompile(`(?m)^(?:import|export)\b.*$`)
)

// joined is a script of the page with all that it imports, as one module. Each script becomes a function that returns what
// it exports, behind those that it imports.
func joined(script string) string {
	var all strings.Builder
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		text := pageFile(name + ".js")
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			add(m[2])
			named := strings.ReplaceAll(m[1], " as ", ": ")
			text = strings.Replace(text, m[0], fmt.Sprintf("const {%s} = of_%s;", named, m[2]), 1)
		}
		var names []string
		for _, m := range exported.FindAllStringSubmatch(text, -1) {
			names = append(names, m[2])
		}
		text = exported.ReplaceAllString(text, "$1")
		if line := another.FindString(text); line != "" {
			panic(fmt.Sprintf("%s.js cannot be joined: %s", name, line))
		}
		fmt.Fprintf(&all, "const of_%s = await (async () => {\n%sreturn {%s};\n})();\n", name, text, strings.Join(names, ", "))
	}
	add(script)
	return all.String()
}

// zippedJSON is something as JSON, compressed, as the text of an element.
func zippedJSON(what any) (string, error) {
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	out := json.NewEncoder(z)
	out.SetEscapeHTML(false) // what is compressed is no HTML
	err := errors.Join(out.Encode(what), z.Close())
	return base64.StdEncoding.EncodeToString(zipped.Bytes()), err
}

// hash is by what a policy knows a script or a style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
