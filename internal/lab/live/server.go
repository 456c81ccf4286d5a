package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"sync"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/trial"
)

// Options are the settings of a [Server]. The zero value is a server for this machine alone.
type Options struct {
	Shop    *catalog.Catalog          // the shop program and its strategies
	Again   func(trial.Result) string // the command that runs a cell again, to which its conditions are added
	Program string                    // as its user calls loadtest, in commands to type; empty for its name
	Hosts   []string                  // names by which the page is opened, besides the loopback ones
	Token   string                    // what starts something; empty makes one
	// Classroom is where phones vote, as [CheckClassroom] returns it; nil for no votes.
	Classroom *url.URL
	Keep      string        // a folder that keeps the last runs for a page that starts again; empty for none
	Record    string        // a folder that keeps the record of each run, a file of JSON lines; empty for none
	First     []matrix.Pair // cells that run before all others
	// FirstDone is called once, with the results of First, when none of them waits any more. Those that
	// were dropped or failed are missing. It may be nil.
	FirstDone func([]trial.Result, report.Environment)
	// Tried are kept results of services that were tried. The page shows them, and starts nothing of them.
	Tried []report.Tried
	// Plan has the settings of the cells. Its pairs are all strategies under all scenarios.
	Plan matrix.Plan
}

// Server is the page and what runs behind it. It is made by [New].
type Server struct {
	o       Options
	menu    menu
	feed    *feed
	streams chan struct{} // one for each page that watches
	ended   chan struct{} // closed when the server ends
	wake    chan struct{} // something waits
	turn    chan struct{} // held by whatever uses the machine

	heartbeat      time.Duration
	searchPatience time.Duration
	background     context.Context // of what outlives a request

	// Of whoever has the turn.
	sessions map[string]*matrix.Session // by what is played there: see sessionOf
	stage    *step.Shops
	where    report.Environment // of the cells, which stays when their session is closed

	mu          sync.Mutex // guards what everybody sees
	runs        []*run     // by id, from 1
	predictions map[cellName]string
	score       score
	preparing   string // what is being started
	loads       []*comparison
	watching    *watcher           // of the run that runs, nil for none
	class       *classroom         // nil for none
	played      *played            // the schedule that was played last, nil for none
	stop        context.CancelFunc // ends the run that runs
	records     []*run             // that have their entries, the oldest first
	keeper      keeper
	recorded    int // the number of the newest file of Record
	before      int // how many of the runs are of an earlier process
}

var inLink = regexp.MustCompile(`^[\w.~+/=-]+$`)

// New makes a server. The error says what is wrong with the options.
func New(o Options) (*Server, error) {
	if o.Record != "" {
		if err := os.MkdirAll(o.Record, 0o755); err != nil {
			return nil, fmt.Errorf("the folder of the records: %w", err)
		}
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	if len(o.Token) < 16 {
		return nil, errors.New("LAB_TOKEN: the token is shorter than 16 characters: it could be guessed")
	}
	if !inLink.MatchString(o.Token) {
		return nil, errors.New("LAB_TOKEN: the token has other characters than letters, digits and ._~+/=-: they do not stay as they are in a link")
	}
	o.Plan.Seed = cmp.Or(o.Plan.Seed, 1)
	o.Plan.Shops = cmp.Or(o.Plan.Shops, matrix.DefaultShops)
	o.Plan.Shop, o.Plan.Strategies, o.Plan.Offered = o.Shop.Program, o.Shop.Strategies, o.Shop.Strategies
	for _, sc := range scenario.Of(trial.OneServer) {
		for _, st := range o.Shop.Strategies {
			o.Plan.Pairs = append(o.Plan.Pairs, matrix.Pair{Strategy: st, Scenario: sc})
		}
	}
	s := &Server{o: o, menu: newMenu(o.Shop, o.Tried), feed: newFeed(), streams: make(chan struct{}, maxStreams), ended: make(chan struct{}),
		wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), heartbeat: heartbeatEvery, searchPatience: searchPatience, background: context.Background(), sessions: map[string]*matrix.Session{}, predictions: map[cellName]string{}}
	if o.Classroom != nil {
		s.class = newClassroom(o.Classroom)
		s.menu.Classroom = &classInfo{URL: o.Classroom.String(), Code: s.class.picture()}
	}
	s.menu.Shops, s.menu.Program = o.Plan.Shops, cmp.Or(o.Program, "loadtest")
	if o.Keep != "" {
		s.showKept()
	}
	s.recorded = recorded(o.Record)
	s.feed.publish("begun", struct{}{}) // so that every state has an id
	return s, nil
}

// showKept shows the runs of an earlier process. It is said what cannot be shown or kept, and the page starts without.
func (s *Server) showKept() {
	s.keeper.folder = s.o.Keep
	all, err := s.keeper.open()
	if err != nil {
		slog.Warn(fmt.Sprintf("runs are kept in %s: %v", s.o.Keep, err))
	}
	for _, r := range all {
		if _, err := s.pair(r.cellName); err == nil { // another shop may not have it
			r.ID = len(s.runs) + 1
			s.runs = append(s.runs, r)
			if r.record != nil {
				s.records = append(s.records, r)
			}
		}
	}
	s.before = len(s.runs)
}

// Token is what starts something.
func (s *Server) Token() string { return s.o.Token }

// Serve answers requests and runs what is asked for until ctx ends. Then it ends everything that
// it has started.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s.background = ctx
	var first []wanted
	for _, p := range s.o.First {
		first = append(first, wanted{cellName{p.Strategy.Name, p.Scenario.Name}, 1, 0})
	}
	if len(first) > 0 {
		if _, err := s.enqueue(first, nil); err != nil {
			return err
		}
	}
	server := &http.Server{
		Handler:           s.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	var working sync.WaitGroup
	working.Go(func() { s.work(ctx) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		close(s.ended)
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			server.Close()
		}
	}
	end() // the listener may have failed
	working.Wait()
	release, _ := s.machine(context.Background()) // a schedule that is played ends with ctx
	defer release()
	return errors.Join(err, s.close())
}

// close ends servers and shops.
func (s *Server) close() error {
	var errs []error
	for kind := range s.sessions {
		errs = append(errs, s.closeSession(kind))
	}
	return errors.Join(append(errs, s.closeStage())...)
}

func (s *Server) log(format string, args ...any) { slog.Error(fmt.Sprintf(format, args...)) }
