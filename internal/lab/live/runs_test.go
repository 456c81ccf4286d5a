package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/testserver"
)

// end notes that a run has ended with a verdict.
func (s *Server) end(r *run, verdict verdict.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc, _ := scenario.ByName(r.Scenario)
	s.concluded(r, trial.Result{Strategy: r.Strategy, Scenario: r.Scenario, Group: sc.Group, Verdict: verdict, Expected: verdict})
}

// TestThePredictionsOfTheRoom are scored once each, by the cell that they were made for.
func TestThePredictionsOfTheRoom(t *testing.T) {
	s := unserved(t)
	cell := cellName{"none", "contention"}
	if err := s.predict(prediction{cell, "held"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.compare(comparison{Strategies: []string{"none"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	s.runs[0].State = running
	if err := s.predict(prediction{cell, "held"}); err != nil {
		t.Errorf("beside a comparison: %v", err)
	}
	s.end(s.runs[0], verdict.Oversold)
	if s.score.Of != 0 {
		t.Error("a comparison under load was taken for the cell")
	}
	for _, verdict := range []verdict.Kind{verdict.Invalid, verdict.Oversold, verdict.Oversold} {
		added, err := s.enqueue([]wanted{{cell, 1, 0}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.end(added[0], verdict)
	}
	if s.score != (score{0, 1}) {
		t.Errorf("the score is %+v, want one prediction, and that wrong", s.score)
	}
	if err := s.predict(prediction{cell, "oversold"}); err != nil {
		t.Fatal(err)
	}
	s.runs[len(s.runs)-1].State = running
	if err := s.predict(prediction{cell, "held"}); err == nil {
		t.Error("the prediction was changed while the cell runs")
	}
	if err := s.predict(prediction{cell, ""}); err == nil {
		t.Error("the prediction was taken back while the cell runs")
	}
}

// TestTheStateHasTheLatestRuns: of each cell the last run that was not dropped, and of comparisons
// all.
func TestTheStateHasTheLatestRuns(t *testing.T) {
	s := unserved(t)
	cell := cellName{"none", "contention"}
	for range 2 {
		added, err := s.enqueue([]wanted{{cell, 1, 0}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.end(added[0], verdict.Oversold)
	}
	if _, err := s.compare(comparison{Strategies: []string{"none"}, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.enqueue([]wanted{{cell, 2, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	if now, _ := s.state(); len(now.Runs) != 3 || now.Runs[0].ID != 2 {
		t.Errorf("while the cell waits, the state has %d runs: want 2, which ended, too", len(now.Runs))
	}
	s.drop()
	now, _ := s.state()
	var ids []int
	for _, r := range now.Runs {
		ids = append(ids, r.ID)
	}
	if len(ids) != 2 || ids[0] != 2 || ids[1] != 3 {
		t.Errorf("the state has the runs %v, want 2, the last of its cell that ended, and 3, of the comparison", ids)
	}
}

// TestFirstCellsThatAreStopped: what there is of them is handed on when none of them waits or runs, and once.
func TestFirstCellsThatAreStopped(t *testing.T) {
	t.Run("by the page", func(t *testing.T) { firstCellsAreStopped(t, func(s *Server, _ func()) { s.drop() }) })
	t.Run("by Ctrl-C", func(t *testing.T) { firstCellsAreStopped(t, func(_ *Server, end func()) { end() }) })
}

func firstCellsAreStopped(t *testing.T, stop func(s *Server, end func())) {
	s := unserved(t)
	cells := []wanted{{cellName{"none", "contention"}, 1, 0}, {cellName{"none", "pause"}, 1, 0}, {cellName{"none", "crash"}, 1, 0}}
	s.o.First = make([]matrix.Pair, len(cells))
	came := make(chan int, 2)
	s.o.FirstDone = func(results []trial.Result, where report.Environment) {
		if where.Go == "" {
			t.Error("where they ran is not known any more")
		}
		came <- len(results)
	}
	s.where.Go = "of the session that was closed"
	if _, err := s.enqueue(cells, nil); err != nil {
		t.Fatal(err)
	}
	s.end(s.runs[0], verdict.Oversold)
	s.firstDone()
	if len(came) > 0 {
		t.Fatal("some of them wait")
	}
	release, _ := s.machine(t.Context())
	ctx, end := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() { s.work(ctx) })
	defer working.Wait()
	defer end()
	stop(s, end)
	release()
	select {
	case n := <-came:
		if n != 1 {
			t.Errorf("%d results, want that of the cell that ended", n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("what there is of them is not handed on")
	}
	end()
	working.Wait()
	s.firstDone()
	if len(came) > 0 {
		t.Error("it is handed on again")
	}
}

// TestAllFirstCellsWait, however many they are.
func TestAllFirstCellsWait(t *testing.T) {
	s := unserved(t)
	s.o.First = slices.Repeat(s.o.Plan.Pairs[:1], len(s.o.Plan.Pairs)+maxWaiting+1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := s.Serve(ctx, listener); err != nil || len(s.runs) != len(s.o.First) {
		t.Errorf("%d of %d cells wait: %v", len(s.runs), len(s.o.First), err)
	}
}

// TestOldRecordsAreForgotten: the last ones are kept.
func TestOldRecordsAreForgotten(t *testing.T) {
	s := unserved(t)
	for range keptRecords + 3 {
		s.addRun(longCell(5))
		s.mu.Lock()
		last := s.runs[len(s.runs)-1]
		s.keep(last, last.record)
		s.mu.Unlock()
	}
	kept := 0
	for _, r := range s.runs {
		if r.record != nil {
			kept++
		}
	}
	if kept != keptRecords || s.runs[2].record != nil || s.runs[3].record == nil {
		t.Errorf("%d records are kept, want the last %d", kept, keptRecords)
	}
}

// TestOldResultsAreForgotten: pages show the last run of each cell.
func TestOldResultsAreForgotten(t *testing.T) {
	s := unserved(t)
	cells := []wanted{{cellName{"none", "contention"}, 1, 0}, {cellName{"none", "pause"}, 1, 0}, {cellName{"none", "contention"}, 1, 5}}
	for range 4 {
		added, err := s.enqueue(cells, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range added {
			s.end(r, verdict.Oversold)
		}
	}
	for i, r := range s.runs {
		if kept := r.result != nil; kept != (i >= 2*len(cells)) {
			t.Errorf("run %d of %d: kept is %t, want the last two of each cell", r.ID, len(s.runs), kept)
		}
	}
}

// TestRecordsStay: another session in the same folder has numbers behind them.
func TestRecordsStay(t *testing.T) {
	folder := t.TempDir()
	for want := 1; want <= 2; want++ {
		s, err := New(Options{Shop: &catalog.Catalog{}, Token: testToken, Record: folder})
		if err != nil {
			t.Fatal(err)
		}
		s.write(&run{ID: 1, cellName: cellName{"none", "contention"}, Seed: 1, Load: 1}, &record{})
		if files, err := os.ReadDir(folder); err != nil || len(files) != want {
			t.Errorf("%d files, %v, want %d", len(files), err, want)
		}
	}
}

// TestTheCommandOfACell names what it does not have by itself.
func TestTheCommandOfACell(t *testing.T) {
	shape, err := load.ParseShape("50..600/8s")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sc    trial.Scenario
		o     trial.Options
		shops int
		want  string
	}{
		{trial.Scenario{Comparable: true}, trial.Options{Stock: 2340, Shape: shape}, 3, " --stock 2340 --rate 50..600/8s"},
		{trial.Scenario{}, trial.Options{Stock: matrix.FaultStock}, 5, " --shops 5"},
		{trial.Scenario{}, trial.Options{Stock: matrix.FaultStock}, 3, ""},
	} {
		if got := conditions(tt.sc, tt.o, tt.shops); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

// TestAComparisonKeepsItsEnvironment while later ones run.
func TestAComparisonKeepsItsEnvironment(t *testing.T) {
	testserver.NeedsServers(t)
	s := serve(t, Options{})
	const marked = "the first one's"
	for id := range 2 {
		if _, err := s.compare(comparison{Strategies: []string{"none"}, Stock: 20, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		s.finished(t, id+1)
		r, err := s.report(id + 1)
		if at := r.Environment.Time; err != nil || at == "" || at == marked {
			t.Errorf("comparison %d was at %q: %v", id+1, at, err)
		}
		if id == 0 {
			s.mu.Lock()
			s.comparison(1).environment.Time = marked
			s.mu.Unlock()
		}
	}
	if r, err := s.report(1); err != nil || r.Environment.Time != marked {
		t.Errorf("after two comparisons, the first was at %q: %v", r.Environment.Time, err)
	}
}

// TestAStageThatFailed is started again for the next schedule. One whose visitor has left stays.
func TestAStageThatFailed(t *testing.T) {
	testserver.NeedsServers(t)
	s := serve(t, Options{})
	for _, tt := range []struct {
		with error
		left bool
		code int
		kept bool
	}{
		{nil, false, http.StatusOK, true},
		{explore.ErrCannot, false, http.StatusConflict, true},
		{context.Canceled, true, http.StatusInternalServerError, true},
		{errors.New("a shop is not ready"), false, http.StatusInternalServerError, false},
		{nil, false, http.StatusOK, true},
	} {
		ctx, leave := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		s.onStage(w, request("POST", "/api/positions", `{"strategy":"none","customers":2}`).WithContext(ctx), time.Minute, func(context.Context, *step.Shops, stepRequest, schedule.Schedule) (any, error) {
			if tt.left {
				leave()
			}
			return "", tt.with
		})
		leave()
		if kept := s.stage != nil; w.Code != tt.code || kept != tt.kept {
			t.Errorf("%v: %d, want %d, and the stage is kept is %t, want %t", tt.with, w.Code, tt.code, kept, tt.kept)
		}
	}
}

// TestASearchWhoseTimeIsOver keeps what it has found, and the stage.
func TestASearchWhoseTimeIsOver(t *testing.T) {
	testserver.NeedsServers(t)
	s := serve(t, Options{})
	for s.searchPatience = 50 * time.Millisecond; ; s.searchPatience *= 2 {
		w := httptest.NewRecorder()
		s.serveExploration(w, request("POST", "/api/explorations", `{"strategy":"set-ex-nx","customers":2,"events":["pause"]}`))
		var found explored
		if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil || w.Code != http.StatusOK || s.stage == nil {
			t.Fatalf("%d, %s, %v, and the stage is kept: %t", w.Code, w.Body, err, s.stage != nil)
		}
		switch late := found.Unknown.Key == "explored.late"; {
		case !late:
			t.Fatalf("it has tried all orders in %s: %s", s.searchPatience, w.Body)
		case found.Runs > 0:
			return
		}
	}
}

// TestAListenerThatFails ends the server.
func TestAListenerThatFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := unserved(t).Serve(t.Context(), listener); err == nil {
		t.Error("it ended without an error")
	}
}

// addRun adds a run that has ended.
func (s *Server) addRun(r *record, result trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &run{ID: len(s.runs) + 1, cellName: cellName{result.Strategy, result.Scenario}, Seed: 1, State: ended, result: &result, record: r, Verdict: result.Verdict}
	s.runs = append(s.runs, added)
}

// longCell is a cell of so many events: sales of five each.
func longCell(events int) (*record, trial.Result) {
	r := &record{scene: scene{Shops: []string{explain.ShopName(0), explain.ShopName(1), explain.ShopName(2)}, Servers: []string{explain.Primary}, LeaseMS: 500, Initial: 30, Rows: 1}}
	for i := 0; len(r.entries) < events; i++ {
		at, shop, request := float64(i)*9, explain.ShopName(i%3), fmt.Sprintf("1-%d", i)
		r.entries = append(r.entries, Entry{AtMS: at, Kind: Sent, Shop: shop, Request: request},
			Entry{AtMS: at + 1, Kind: Lock, Server: explain.Primary, Key: "stock:1", What: "set"},
			Entry{AtMS: at + 2, Kind: Point, Shop: shop, Request: request, Point: sale.Acquired},
			Entry{AtMS: at + 7, Kind: Point, Shop: shop, Request: request, Point: sale.Released},
			Entry{AtMS: at + 8, Kind: Answered, Shop: shop, Request: request, Outcome: "sold_out", LatencyMS: 8})
	}
	r.entries = r.entries[:events]
	return r, trial.Result{Strategy: "none", Scenario: "pause", Verdict: verdict.Held, Expected: verdict.Held, Requests: int64(events) / 5}
}
