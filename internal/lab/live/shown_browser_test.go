package live

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/baskets"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// publishEnd ends a run, and tells the pages.
func (s *Server) publishEnd(r *run, how verdict.Kind) {
	s.end(r, how)
	s.feed.publish("ended", struct {
		*run
		Score score `json:"score"`
	}{r, s.score})
}

// publishBegin has a run begin for the pages.
func (s *Server) publishBegin(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.State = running
	s.feed.publish("running", r)
}

// TestWhatIsShownStays: of a page, only what an event is about is drawn anew.
func TestWhatIsShownStays(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	title := browsertest.Says[string](b, `document.title`)

	// One event of a search, and one of a vote, change no cell.
	b.Run(chromedp.Evaluate(`window.painted = 0; new MutationObserver(all => { painted += all.length; }).observe(document.querySelector('.matrix'), {childList: true, subtree: true})`, nil))
	s.searching(stepRequest{Strategy: "none"}, "", 1)
	s.feed.publish("votes", s.class.tally())
	s.say("MySQL")
	b.Until(`document.getElementById('going').textContent !== ''`) // it came behind them
	if n := browsertest.Says[int](b, `painted`); n != 0 {
		t.Errorf("a search and a vote have changed the matrix %d times", n)
	}
	s.say("")

	// A cell that waits says for how many.
	added, err := s.enqueue([]wanted{{cellName{"none", "contention"}, 1, 0}, {cellName{"none", "pause"}, 1, 0}, {cellName{"none", "crash"}, 1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	open(b, "#/cell/none/crash")
	b.Until(`document.querySelector('.queued')?.textContent.includes('3')`)
	if now := browsertest.Says[string](b, `document.title`); now == title || title == "stocklock" {
		t.Errorf("the matrix has the title %q, and a cell %q", title, now)
	}
	s.publishBegin(added[0])
	b.Until(`document.querySelector('.queued')?.textContent.includes('2')`)
	s.drop()
	s.publishEnd(added[0], verdict.Oversold)

	// A comparison that runs changes its own line.
	if _, err := s.compare(comparison{Strategies: []string{"none", "conditional"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	runs := s.runs[len(s.runs)-2:]
	s.publishEnd(runs[0], verdict.Oversold)
	s.publishBegin(runs[1])
	b.Until(`document.querySelector('#strip a')?.hash === '#/load'`)
	open(b, "#/load")
	b.Until(`document.querySelector('.load a[download]') && document.querySelector('.load .v')`)
	b.Run(chromedp.Evaluate(`old = document.querySelector('.load a[download]'); old.focus()`, nil))
	s.feed.publish("seen", seen{Run: runs[1].ID, counts: counts{Sold: 7}})
	b.Until(`document.querySelector('[data-run]').textContent.includes(' 7 ')`)
	if !browsertest.Says[bool](b, `old.isConnected && document.activeElement === old`) {
		t.Error("what has the focus was drawn anew")
	}

	// A hidden tab leaves its connection to the others, and misses nothing.
	hide := func(is bool) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf(`Object.defineProperty(document, 'hidden', {value: %t, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))`, is), nil)
	}
	b.Run(hide(true))
	testserver.Await(t, "a hidden page to give back its connection", func() bool { return len(s.streams) == 0 })
	s.publishEnd(runs[1], verdict.Held)
	b.Run(hide(false))
	b.Until(`document.querySelectorAll('.load .v').length === 2`)
}

// TestALabThatWasStartedAgain: its runs have the numbers of those of before.
func TestALabThatWasStartedAgain(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	b := browsertest.Open(t, time.Minute)
	if _, err := s.compare(comparison{Strategies: []string{"none"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	s.end(s.runs[0], verdict.Oversold)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	open(b, "#/load")
	b.Until(`document.querySelector('.load .v')`)
	again := unserved(t)
	if _, err := again.compare(comparison{Strategies: []string{"none"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	now, _ := again.state()
	content, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	b.Run(chromedp.Evaluate(`import('/store.js').then(({take}) => take('state', `+string(content)+`))`, nil))
	b.Until(`document.querySelector('.load [data-run]')`)
	if shown := browsertest.Says[int](b, `document.querySelectorAll('.load .v').length`); shown != 0 {
		t.Errorf("a run that waits shows %d verdicts of another lab", shown)
	}
}

// TestTheCellOfALabThatWasStartedAgain is shown as it ended there, alone and beside another one.
func TestTheCellOfALabThatWasStartedAgain(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	cells := []wanted{{cellName{"none", "pause"}, 1, 0}, {cellName{"conditional", "pause"}, 1, 0}}
	if _, err := s.enqueue(cells, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.runs {
		s.end(r, verdict.Oversold)
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	before, after := verdict.Oversold, verdict.Held
	for _, view := range []string{"#/cell/none/pause", "#/pair/pause/none/conditional"} {
		open(b, view)
		b.Until(`document.querySelector('.ended.is-` + string(before) + ` .cause')`)
		for _, r := range s.runs {
			s.end(r, after)
		}
		now, _ := s.state()
		content, err := json.Marshal(now)
		if err != nil {
			t.Fatal(err)
		}
		b.Run(chromedp.Evaluate(`import('/store.js').then(({take}) => take('state', `+string(content)+`))`, nil))
		b.Until(`document.querySelector('.ended.is-` + string(after) + ` .cause')`)
		before, after = after, before
	}
}

// TestANumberThatDidNotCome is asked for again when the page is connected again.
func TestANumberThatDidNotCome(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	if _, err := s.compare(comparison{Strategies: []string{"none"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	open(b, "#/load")
	b.Run(chromedp.Evaluate(`real = fetch; missed = 0; fetch = (...of) => { if (!String(of[0]).includes('api/runs/')) return real(...of); missed++; return Promise.reject(new TypeError('cut')); }`, nil))
	s.publishEnd(s.runs[0], verdict.Oversold)
	b.Until(`missed > 0 && document.querySelector('.load [data-run]')`)
	b.Run(chromedp.Evaluate(`fetch = real; import('/store.js').then(({store}) => { store.connected = false; })`, nil))
	b.Until(`document.querySelector('.load .v.oversold')`) // with the next heartbeat
}

// TestEachViewStops what runs, and names the program as it was called.
func TestEachViewStops(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	s.menu.Program = "bin/loadtest"
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	open(b, "#/mine")
	b.Until(`document.querySelector('.mine .command')?.textContent.startsWith('bin/loadtest run ')`)
	if _, err := s.enqueue([]wanted{{cellName{"none", "contention"}, 1, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	b.Until(`!document.getElementById('stop-all').hidden`)
	b.Run(click("#stop-all"))
	b.Until(`document.getElementById('stop-all').hidden`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.runs[0].State; state != dropped {
		t.Errorf("the cell is %s after Stop", state)
	}
}

// TestRunsOfTwoSeeds are not waited for.
func TestRunsOfTwoSeeds(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	added, err := s.enqueue([]wanted{{cellName{"none", "pause"}, 1, 0}, {cellName{"conditional", "pause"}, 2, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.publishEnd(added[0], verdict.Oversold)
	s.publishEnd(added[1], verdict.Held)
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	open(b, "#/pair/pause/none/conditional")
	b.Until(`document.querySelector('.pair-state + .soft')?.textContent.includes('different seeds, 1 and 2')`)
}

// TestAFirstRequestThatFailed can be made again, and how a schedule ends is heard.
func TestAFirstRequestThatFailed(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Run(chromedp.Evaluate(`fetch = async () => { throw new TypeError('no stage'); }`, nil))
	open(b, "#/step/none/2")
	b.Until(`document.getElementById('play-again')`)
	b.Run(chromedp.Evaluate(`fetch = async () => new Response(JSON.stringify({entries: [], ended: true, outcome: {verdict: 'held', stock: 1, orders: [], answers: {}}}), {headers: {'Content-Type': 'application/json'}})`, nil), click("#play-again"))
	b.Until(`document.getElementById('ending') && document.getElementById('heard').textContent === document.getElementById('ending').textContent`)
}

// TestASearchOfALessonEnds when the lesson is left. Until then it says how many orders were tried.
func TestASearchOfALessonEnds(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	open(b, "#/lessons/1/run")
	b.Run(chromedp.Evaluate(`signals = []; searches = []; fetch = (address, {signal, body}) => { signals.push(signal); if (address.includes('explorations')) searches.push(JSON.parse(body).strategy); return new Promise(() => {}); };
		for (const begin of document.querySelectorAll('.begin')) begin.click()`, nil))
	b.Until(`signals.some(s => s) && searches.length`)
	s.searching(stepRequest{Strategy: browsertest.Says[string](b, `searches[0]`)}, "", 7)
	b.Until(`[...document.querySelectorAll('.result')].some(r => r.textContent.includes(' 7 orders tried'))`)
	b.Run(goTo("#/"))
	b.Until(`signals.filter(s => s).every(s => s.aborted)`)
}

// TestWhoWatchesGoesBack to where they were before they followed a schedule.
func TestWhoWatchesGoesBack(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	s.played = &played{stepRequest: stepRequest{Strategy: "none", Customers: 2, Schedule: "A.select"}}
	s.played.Position.Entries = []schedule.Entry{}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s)))
	b.Until(matrixShown)
	open(b, "#/load")
	b.Run(goTo("#/step"))
	b.Until(`location.hash.includes('A.select')`)
	b.Run(chromedp.Evaluate(`history.back()`, nil))
	b.Until(`location.hash === '#/load'`)
}

// TestTheReplayKnowsTheLock: a counter in Redis is none.
func TestTheReplayKnowsTheLock(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	added, err := s.enqueue([]wanted{{cellName{"ack-first", "crash"}, 1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.end(added[0], verdict.Lied)
	added[0].record = &record{
		scene:   scene{Shops: []string{"shop 1"}, Servers: []string{explain.Primary}, Ignore: []string{"{stock:7}:left"}, LeaseMS: 100, Initial: 1, Rows: 1},
		entries: []Entry{{AtMS: 1, Kind: Lock, Server: explain.Primary, Key: "{stock:7}:left", What: "decrby"}},
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#/cell/ack-first/crash"))
	b.Until(`document.querySelector('.player .gauge-box')?.dataset.state`)
	if state := browsertest.Says[string](b, `document.querySelector('.player .gauge-box').dataset.state`); state != "free" {
		t.Errorf("the replay shows a lock that is %s", state)
	}
}

// TestACellThatDoesNotApply shows why, and has no replay, neither alone nor beside another one.
func TestACellThatDoesNotApply(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	added, err := s.enqueue([]wanted{{cellName{"none", "crash-acquiring"}, 1, 0}, {cellName{"conditional", "crash-acquiring"}, 1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range added {
		pair, err := s.pair(r.cellName)
		if err != nil {
			t.Fatal(err)
		}
		s.end(r, verdict.Inapplicable)
		r.record = newWatcher(r.ID, pair, trial.Options{}, 3).record() // it was never attacked
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#/cell/none/crash-acquiring"))
	b.Until(`document.querySelector('.cause')`)
	b.Run(goTo("#/pair/crash-acquiring/none/conditional"))
	b.Until(`document.querySelectorAll('.pair-why .cause').length === 2`)
	if kept := browsertest.Says[bool](b, `document.body.textContent.includes('not kept')`); kept {
		t.Error("it says that events are not kept any more, and there were none")
	}
}

// TestWhatHeldMeans is another thing of baskets and of reservations than of one item: units may be left.
func TestWhatHeldMeans(t *testing.T) {
	t.Parallel()
	s := unservedClass(t)
	shop := &catalog.Catalog{Strategies: ladder.Describe(ladder.All()), Baskets: ladder.Describe(baskets.All()), Reservations: ladder.Describe(ladder.Reservations())}
	class := s.menu.Classroom
	s.o.Shop, s.menu = shop, newMenu(shop, nil)
	s.menu.Classroom = class
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "#token=" + testToken))
	b.Until(matrixShown)
	for _, tt := range []struct {
		view string
		cell cellName
		want string
	}{
		{"", cellName{"none", "contention"}, "exactly the stock"},
		{"baskets", cellName{"rows-sorted", "same-item-twice"}, "every unit is in one order or for sale"},
		{"reservations", cellName{"reservation-rows", "held-units"}, "every order was paid once"},
	} {
		says := func(where, selector string) {
			b.Until(fmt.Sprintf(`document.querySelector(%q)`, selector))
			if said := browsertest.Says[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, selector)); !strings.Contains(strings.ToLower(said), tt.want) {
				t.Errorf("%s, %s: held is %q, want %q", tt.cell, where, said, tt.want)
			}
		}
		open(b, "#/"+tt.view)
		says("the legend", ".legend")
		open(b, "#/cell/"+tt.cell.Strategy+"/"+tt.cell.Scenario)
		says("a prediction", ".guess.held")
		asked, err := s.ask(subject{cellName: tt.cell})
		if err != nil || asked.(*tally).Group != tt.view {
			t.Errorf("phones are asked of the group %q, %v, want %q", asked.(*tally).Group, err, tt.view)
		}
		added, err := s.enqueue([]wanted{{tt.cell, 1, 0}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.publishEnd(added[0], verdict.Held)
		says("the cause", ".cause")
	}
}
