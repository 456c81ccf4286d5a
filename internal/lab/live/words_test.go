package live

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/ladder"
)

// TestNamesAreSaidInChinese: what has its English words in its own file.
func TestNamesAreSaidInChinese(t *testing.T) {
	zh := words.Chinese.Messages()
	for _, s := range slices.Concat(ladder.All(), baskets.All(), ladder.Reservations()) {
		if zh["strategy."+s.Name] == "" {
			t.Errorf("the strategy %s is not described in Chinese", s.Name)
		}
	}
	for cause := range verdict.Causes() {
		if cause.Doc() == "" {
			t.Errorf("the cause %s is not said", cause)
		}
	}
	for _, s := range scenario.Of(trial.OneServer) {
		if done := s.Crowd.Intervention; done != "" && words.English.Named("done", s.Crowd.Intervention) == s.Crowd.Intervention {
			t.Errorf("what %s does has no words: %s", s.Name, done)
		}
	}
	for _, o := range []load.Outcome{load.Sold, load.SoldOut, load.Busy, load.Fenced, load.Lost, load.Unknown, load.Refused, load.Conflict, load.Limited, load.Failed, load.Done, load.MustReturn, load.OtherState, load.InUse} {
		if !slices.Contains(unserved(t).menu.Outcomes, string(o)) {
			t.Errorf("the outcome %s has no words and no colour", o)
		}
	}
	menu := unserved(t).menu
	for _, s := range menu.scenarios() {
		if zh["scenario."+s.Name] == "" || zh["name."+s.Name] == "" || s.Attacks != "" && zh["property."+s.Attacks] == "" {
			t.Errorf("the scenario %s, or what it attacks, is not described in Chinese", s.Name)
		}
	}
	for _, of := range menu.Topologies {
		if zh["topology."+of.Name] == "" {
			t.Errorf("the topology %s is not described in Chinese", of.Name)
		}
	}
}

var said = regexp.MustCompile(`\bt\('([a-z0-9.]+)'[,)]`)

// TestWhatThePageSaysIsThere looks for each phrase that the scripts name.
func TestWhatThePageSaysIsThere(t *testing.T) {
	en := words.English.Messages()
	scripts, err := fs.Glob(pageFiles, "page/*.js")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, script := range scripts {
		text, err := pageFiles.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range said.FindAllSubmatch(text, -1) {
			found++
			if en[string(match[1])] == "" {
				t.Errorf("%s says %q, which is not in words/en.json", script, match[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("%d phrases found in the scripts: the test looks for them in another form", found)
	}
}

// TestThePageSaysWhatGoSays, also where a fact is missing: JSON leaves out one that is 0.
func TestThePageSaysWhatGoSays(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t)))
	b.Until(matrixShown)
	for _, said := range []words.Text{
		words.Of("committed-late", "holder", explain.Sale{Request: "#1", Shop: "shop 1"}, "other", explain.Sale{Request: "#2", Shop: "shop 2"}, "order", 7),
		words.Of("committed-late", "holder", explain.Sale{Request: "#1", Shop: "shop 1"}, "other", explain.Sale{Request: "#2", Shop: "shop 2"}, "order", 7, "lasted_ms", 12.6),
		words.Of("committed-late", "order", 7),
		words.Of("sale", "request", "#1"),
		words.Of("refused.lacks", "strategy", "owner-delex", "why", words.Of("unfit.command", "commands", "DELEX")),
	} {
		content, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		b.Run(chromedp.Evaluate(`heard = undefined; import('/words.js').then(({said}) => { heard = said(`+string(content)+`); })`, nil))
		b.Until(`heard !== undefined`)
		if heard := browsertest.Says[string](b, `heard`); heard != said.String() {
			t.Errorf("the page says %q, and Go %q", heard, said)
		}
	}
}

// TestThePageIsSmall: all of it, compressed, is under 200 KB.
func TestThePageIsSmall(t *testing.T) {
	sum := 0
	for _, a := range pageAssets() {
		sum += len(a.zipped)
	}
	if sum > 200_000 || sum < 10_000 {
		t.Errorf("the page is %d bytes compressed, want at most 200 KB", sum)
	}
	t.Logf("%d bytes", sum)
}

// TestWhatCannotHappenIsNotOffered as a prediction: an item of one order cannot be half sold, and what some strategy comes
// to is offered.
func TestWhatCannotHappenIsNotOffered(t *testing.T) {
	m := unserved(t).menu
	for _, s := range m.Scenarios {
		if !slices.Contains(s.Words, verdict.Held) || slices.Contains(s.Words, verdict.HalfSold) || slices.Contains(s.Words, verdict.Unpaid) {
			t.Errorf("%s offers %v", s.Name, s.Words)
		}
		if s.Name == "crash-answered" && !slices.Contains(s.Words, verdict.Lied) {
			t.Errorf("%s, where a strategy lies, offers %v", s.Name, s.Words)
		}
	}
}
