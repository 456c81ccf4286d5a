package live

import (
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/verdict"
)

// A phone gets one page, on which it votes. It is known by a cookie that the page's answer sets, and what
// it sends is refused without one. A phone that forgets its cookie is a new phone: this is a class, and no
// election.
const (
	// maxPhones bounds the phones of a class, and how many of them listen at once.
	maxPhones = 300
	// maxChanges bounds how often a phone changes its vote on one thing: each change is told to all pages.
	maxChanges = 20
	// maxVote bounds the body of a vote, in bytes.
	maxVote = 1 << 10

	phoneCookie = "phone"
	votePage    = "/vote"
)

var (
	errPhones  = fmt.Errorf("%d phones vote already", maxPhones)
	errNoPhone = errors.New("this phone is not known here: open the page anew")
	errClosed  = errors.New("the vote has ended")
	errChanged = fmt.Errorf("a vote may be changed %d times", maxChanges)
)

// classroom is the vote of a class. Its fields are guarded by the server's mu.
type classroom struct {
	url    *url.URL
	phones map[string]bool // by cookie
	now    *ballot         // nil for none
	votes  map[string]string
	change map[string]int // how often each phone has
	last   int            // number of the last ballot, beyond those of an earlier process, which a phone may know
	feed   *feed
	heard  chan struct{} // one for each phone that listens
}

// subject is what is voted on: how a cell or a schedule ends.
type subject struct {
	cellName
	Schedule string `json:"schedule,omitempty"`
	Title    string `json:"title,omitempty"` // a command of a lesson
}

// ballot is one vote of the class.
type ballot struct {
	ID int `json:"id"`
	subject
	Doc     string         `json:"doc,omitempty"`   // of the scenario
	Group   string         `json:"group,omitempty"` // likewise
	Words   []verdict.Kind `json:"words"`
	Open    bool           `json:"open"`
	Verdict verdict.Kind   `json:"verdict,omitempty"` // what it was, when that is known
}

// tally is a ballot with its votes. Only the big page shows it.
type tally struct {
	*ballot
	Votes map[string]int `json:"votes"` // by word
}

// CheckClassroom returns the URL under which phones vote, or what is wrong with it.
func CheckClassroom(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a page: want one that phones can open, such as http://192.168.1.20:8080", text)
	}
	u.Path = votePage
	return u, nil
}

func newClassroom(u *url.URL) *classroom {
	c := &classroom{url: u, last: int(time.Now().Unix()), phones: map[string]bool{}, votes: map[string]string{}, change: map[string]int{}, feed: newFeed(), heard: make(chan struct{}, maxPhones)}
	c.feed.publish("ballot", c.now)
	return c
}

// tally is called with the server's mu.
func (c *classroom) tally() *tally {
	if c == nil || c.now == nil {
		return nil
	}
	of := *c.now
	t := &tally{&of, map[string]int{}}
	for _, word := range c.votes {
		t.Votes[word]++
	}
	return t
}

// phonesMay are the requests that phones send. Under the class's address there are no others.
func (s *Server) phonesMay() *http.ServeMux {
	mux := http.NewServeMux()
	for name, file := range assets() {
		switch name {
		case "/{$}":
			mux.Handle("GET /{$}", http.RedirectHandler(votePage, http.StatusFound))
		case votePage + ".html":
			mux.HandleFunc("GET "+votePage, func(w http.ResponseWriter, r *http.Request) {
				if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" && dest != "document" {
					refuse(w, http.StatusForbidden, "phone", errors.New("this page is opened, and not a part of another one"))
				} else if s.letIn(w, r) {
					file.ServeHTTP(w, r)
				}
			})
		default:
			mux.Handle("GET "+name, file)
		}
	}
	mux.HandleFunc("GET /api/ballot", s.serveBallot)
	mux.HandleFunc("POST /api/votes", s.serveVote)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "phone", errors.New("phones vote here, and do nothing else"))
	})
	return mux
}

// letIn gives a phone its cookie. It comes with a link from another site, too: a phone is one phone wherever its
// link was found.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cookie, err := r.Cookie(phoneCookie); err == nil && s.class.phones[cookie.Value] {
		return true
	}
	if len(s.class.phones) == maxPhones {
		refuse(w, http.StatusServiceUnavailable, "full", errPhones)
		return false
	}
	id := rand.Text()
	s.class.phones[id] = true
	http.SetCookie(w, &http.Cookie{Name: phoneCookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.class.url.Scheme == "https"})
	return true
}

// serveBallot sends a phone what is voted on.
func (s *Server) serveBallot(w http.ResponseWriter, r *http.Request) {
	serveFeed(s, w, r, s.class.feed, s.class.heard, func() (string, any, uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return "ballot", s.class.now, s.class.feed.last()
	})
}

func (s *Server) serveVote(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxVote)
	var asked struct {
		Ballot int    `json:"ballot"`
		Word   string `json:"word"`
	}
	if !read(w, r, &asked) {
		return
	}
	phone := ""
	if cookie, err := r.Cookie(phoneCookie); err == nil {
		phone = cookie.Value
	}
	switch err := s.vote(phone, asked.Ballot, asked.Word); {
	case errors.Is(err, errNoPhone):
		refuse(w, http.StatusForbidden, "phone", err)
	case errors.Is(err, errChanged):
		refuse(w, http.StatusTooManyRequests, "full", err)
	case errors.Is(err, errClosed):
		refuse(w, http.StatusConflict, "closed", err)
	case err != nil:
		refuse(w, http.StatusBadRequest, "malformed", err)
	default:
		answer(w, http.StatusOK, asked)
	}
}

// vote counts what a phone says. Its last word counts.
func (s *Server) vote(phone string, number int, word string) error {
	if !verdict.Of(verdict.Kind(word)).Predictable {
		return fmt.Errorf("%q is no verdict: want one of %v", word, s.menu.Words)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.class
	switch {
	case !c.phones[phone]:
		return errNoPhone
	case c.now == nil || !c.now.Open || c.now.ID != number:
		return errClosed
	}
	if c.votes[phone] == word {
		return nil
	}
	if c.change[phone]++; c.change[phone] > maxChanges {
		return errChanged
	}
	c.votes[phone] = word
	s.feed.publish("votes", c.tally())
	return nil
}

// ask begins a vote. The one before ends.
func (s *Server) ask(about subject) (any, error) {
	var pair matrix.Pair // none of a schedule
	err := errors.New("there is no class here: begin the page with --classroom URL")
	if s.class != nil {
		err = nil
		if about.Schedule == "" {
			pair, err = s.pair(about.cellName)
		} else if len(about.Schedule) > maxSchedule || len(about.Title) > maxSchedule {
			err = fmt.Errorf("the schedule has more than %d characters", maxSchedule)
		}
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if about.Schedule == "" {
		if err := s.runsAlready(about.cellName); err != nil {
			return nil, err
		}
	}
	c := s.class
	c.last++
	c.now = &ballot{ID: c.last, subject: about, Group: pair.Scenario.Group, Words: predictable(verdict.OfSchedules), Open: true}
	for _, of := range s.menu.scenarios() {
		if of.Name == about.Scenario {
			c.now.Doc, c.now.Words = of.Doc, of.Words
		}
	}
	clear(c.votes)
	clear(c.change)
	s.tellClass()
	return c.tally(), nil
}

// tellClass is called with mu.
func (s *Server) tellClass() {
	s.class.feed.publish("ballot", s.class.now)
	s.feed.publish("votes", s.class.tally())
}

// began ends the vote on what begins to run. It is called with mu.
func (s *Server) began(of cellName, schedule string) {
	if c := s.class; c != nil && c.now != nil && c.now.Open && c.now.cellName == of && c.now.Schedule == schedule {
		c.now = c.now.with(func(b *ballot) { b.Open = false })
		s.tellClass()
	}
}

// decided tells the class how what it voted on has ended. What says nothing decides nothing. It is called with mu.
func (s *Server) decided(of cellName, schedule string, how verdict.Kind) {
	if v := verdict.Of(how); !v.Bad && !v.Predictable {
		return
	}
	if c := s.class; c != nil && c.now != nil && !c.now.Open && c.now.Verdict == "" && c.now.cellName == of && c.now.Schedule == schedule {
		c.now = c.now.with(func(b *ballot) { b.Verdict = how })
		s.tellClass()
	}
}

// with is a changed copy: what was published stays as it is.
func (b ballot) with(change func(*ballot)) *ballot {
	change(&b)
	return &b
}

// picture draws the address as a QR code.
func (c *classroom) picture() string {
	code, err := qr.Encode(c.url.String(), qr.M, qr.Auto)
	if err != nil {
		return "" // too long: the address is shown beside it
	}
	var dots strings.Builder
	size := code.Bounds().Dx()
	for y := range size {
		for x := range size {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&dots, "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	// Four modules of margin are part of a code.
	return fmt.Sprintf(`<svg class="qr" viewBox="-4 -4 %d %d" role="img" aria-label="%s"><rect x="-4" y="-4" width="%d" height="%d" fill="#fff"/><path d="%s" fill="#000"/></svg>`,
		size+8, size+8, html.EscapeString(c.url.String()), size+8, size+8, &dots)
}
