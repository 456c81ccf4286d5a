package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

const (
	// maxSchedule bounds the text of a schedule, in bytes.
	maxSchedule = 2000
	// stageLease is the lease of every lock on the stage, unless one of the shop's needs a longer one.
	stageLease = 300 * time.Millisecond
	// positionPatience bounds one position, and before it the wait for the machine.
	positionPatience = 2 * time.Minute
	// searchPatience bounds an exploration, without the wait for the machine.
	searchPatience = 90 * time.Second
)

// stepRequest asks how things stand after a schedule. Nothing is kept between two requests: each
// plays the schedule on a fresh item.
type stepRequest struct {
	Strategy  string `json:"strategy"`
	Customers int    `json:"customers"`
	Schedule  string `json:"schedule"`
	ToEnd     bool   `json:"to_end"`  // and then customer by customer to the end
	Baskets   bool   `json:"baskets"` // each customer buys two items in one sale
	// Events is the kind that may happen in an exploration, none for no event.
	Events []schedule.Event `json:"events,omitempty"`
}

// position is how things stand after the last entry of a schedule. Its outcome is where the schedule
// leads, if customer by customer goes to the end.
type position struct {
	step.Position
	// Drawing is by language, as a terminal has it, of sales of several items.
	Drawing map[string]string `json:"drawing,omitempty"`
}

// played is what was asked, and how things stood: those who only watch see it.
type played struct {
	stepRequest
	Position position `json:"position"`
}

var errBusy = words.Of("refused.busy")

// stage is opened by the first who asks. It is called by whoever has the machine.
func (s *Server) openStage(ctx context.Context) (*step.Shops, error) {
	if s.stage != nil {
		return s.stage, nil
	}
	s.say("starting the stage")
	defer s.say("")
	lease := stageLease
	for _, st := range slices.Concat(s.o.Shop.Strategies, s.o.Shop.Baskets) {
		lease = max(lease, st.ShortestLease)
	}
	stage, err := step.OpenShops(ctx, s.o.Shop, step.Options{Lease: lease, OwnSlots: 2, RedisServer: s.o.Plan.RedisServer})
	if err != nil {
		return nil, err
	}
	s.stage = stage
	return stage, nil
}

// closeStage is called by whoever has the machine.
func (s *Server) closeStage() (err error) {
	if s.stage != nil {
		err = s.stage.Close()
		s.stage = nil
	}
	return err
}

// onStage checks a request, waits for the machine, and gives the stage to play.
func (s *Server) onStage(w http.ResponseWriter, r *http.Request, patience time.Duration, play func(context.Context, *step.Shops, stepRequest, schedule.Schedule) (any, error)) {
	var asked stepRequest
	if !read(w, r, &asked) {
		return
	}
	plan, err := s.checkStep(asked)
	if err != nil {
		refuse(w, http.StatusBadRequest, "malformed", err)
		return
	}
	waiting, cancel := context.WithTimeout(r.Context(), positionPatience)
	release, err := s.machine(waiting)
	cancel()
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "busy", errBusy)
		return
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var why words.Text
	var found any
	of, err := s.o.Shop.Any(asked.Strategy)
	on, unopened := s.openStage(s.background)
	if err = cmp.Or(err, unopened); err == nil {
		why, err = on.Lacks(ctx, of)
	}
	if err == nil && why.IsZero() {
		found, err = play(ctx, on, asked, plan)
	}
	switch {
	case !why.IsZero():
		refuse(w, http.StatusConflict, "skipped", words.Of("refused.lacks", "strategy", of.Name, "why", why))
	case errors.Is(err, explore.ErrCannot):
		refuse(w, http.StatusConflict, "cannot", err)
	case err != nil:
		if r.Context().Err() == nil { // the stage may be broken
			err = errors.Join(err, s.closeStage())
		}
		refuse(w, http.StatusInternalServerError, "failed", err)
	default:
		answer(w, http.StatusOK, found)
	}
}

func (s *Server) checkStep(asked stepRequest) (schedule.Schedule, error) {
	among := s.menu.Strategies
	if asked.Baskets {
		among = s.menu.Baskets.Strategies
	}
	i := slices.IndexFunc(among, func(i strategyInfo) bool { return i.Name == asked.Strategy })
	switch {
	case i < 0:
		return nil, fmt.Errorf("there is no strategy %q", asked.Strategy)
	case among[i].NotStepped:
		return nil, words.Of("refused.not-stepped", "strategy", asked.Strategy)
	case asked.Customers < 2 || asked.Customers > schedule.MaxCustomers:
		return nil, fmt.Errorf("%d customers: want 2 or %d", asked.Customers, schedule.MaxCustomers)
	case len(asked.Schedule) > maxSchedule:
		return nil, fmt.Errorf("the schedule has %d characters: want at most %d", len(asked.Schedule), maxSchedule)
	}
	if len(asked.Events) > 1 || len(asked.Events) == 1 && !slices.Contains(schedule.Events(), asked.Events[0]) {
		return nil, fmt.Errorf("the events are %v: want one of %v", asked.Events, schedule.Events())
	}
	plan, err := schedule.Parse(asked.Schedule)
	if err == nil && plan.Customers() > asked.Customers {
		err = words.Of("refused.customers", "n", plan.Customers(), "most", asked.Customers)
	}
	return plan, err
}

func (s *Server) servePosition(w http.ResponseWriter, r *http.Request) {
	s.onStage(w, r, positionPatience, func(ctx context.Context, on *step.Shops, asked stepRequest, plan schedule.Schedule) (any, error) {
		var at step.Position
		var err error
		steps := step.As{Shops: on, Sales: schedule.Sales{Baskets: asked.Baskets}}
		if asked.ToEnd {
			s.mu.Lock()
			s.began(cellName{Strategy: asked.Strategy}, asked.Schedule)
			s.mu.Unlock()
			at.Ended = true
			at.Record, err = steps.PlaySchedule(ctx, asked.Strategy, asked.Customers, plan)
		} else {
			at, err = steps.Position(ctx, asked.Strategy, asked.Customers, plan)
		}
		if err != nil {
			return nil, err
		}
		p := position{Position: at}
		if asked.Baskets {
			p.Drawing = map[string]string{}
			for _, l := range words.Languages {
				var drawn strings.Builder
				schedule.Draw(&drawn, l, at.Record, 0)
				p.Drawing[l.String()] = drawn.String()
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if asked.ToEnd {
			s.decided(cellName{Strategy: asked.Strategy}, asked.Schedule, at.Outcome.Verdict)
		}
		s.played = &played{asked, p}
		s.feed.publish("played", s.played)
		return p, nil
	})
}

// searching tells how many orders were tried.
func (s *Server) searching(asked stepRequest, event schedule.Event, runs int) {
	s.feed.publish("searching", map[string]any{"strategy": asked.Strategy, "event": event, "runs": runs})
}

// explored is the answer to an exploration.
type explored struct {
	stepRequest
	Runs     int               `json:"runs"`
	Bad      int               `json:"bad"`
	Shortest string            `json:"shortest,omitempty"` // a schedule that fails: one that oversells, where there is one
	Outcome  *schedule.Outcome `json:"outcome,omitempty"`  // of it
	Unknown  words.Text        `json:"unknown,omitzero"`   // what could not be decided
}

// serveExploration runs every order of the steps, with the event that was asked for at every place, as
// loadtest explore does.
func (s *Server) serveExploration(w http.ResponseWriter, r *http.Request) {
	s.onStage(w, r, searchPatience+positionPatience, func(ctx context.Context, on *step.Shops, asked stepRequest, _ schedule.Schedule) (any, error) {
		asking := survey.Plan{Strategy: asked.Strategy, Customers: asked.Customers, Events: asked.Events, Sales: schedule.Sales{Baskets: asked.Baskets}}
		event := schedule.Event("")
		if len(asked.Events) > 0 {
			event = asked.Events[0]
		}
		switch {
		case asked.Baskets && (asked.Customers > 2 || event != ""):
			asking.Switches = 1
		case asked.Customers > 2:
			asking.Switches = survey.ThreeSwitches
		}
		var result survey.Result
		searching, cancel := context.WithTimeout(ctx, s.searchPatience)
		defer cancel()
		err := asking.Run(searching, on, func(_ survey.Result, done, _ int) { s.searching(asked, event, done) }, func(r survey.Result) { result = r })
		late := searching.Err() != nil && ctx.Err() == nil // what was found until then stays
		if err != nil && !late {
			return nil, err
		}
		found := result.Found
		e := explored{stepRequest: asked, Runs: found.Runs, Bad: found.Bad, Unknown: result.Unknown()}
		if err != nil {
			e.Unknown = words.Of("explored.late", "s", int(s.searchPatience.Seconds()))
		}
		if all := found.Shortest; len(all) > 0 {
			best := all[max(slices.IndexFunc(all, func(r schedule.Record) bool { return r.Outcome.Verdict == verdict.Oversold }), 0)]
			e.Shortest, e.Outcome = best.Schedule.String(), &best.Outcome
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.feed.publish("explored", e)
		return e, nil
	})
}
