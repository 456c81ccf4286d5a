package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stocklock"
	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/ladder"
)

// What a class needs besides reading and the runs, for the clock of the plan.
const (
	aPrediction = 40 * time.Second
	aQuestion   = 20 * time.Second
	// aCommand is what a command is counted with, though it takes more on a machine that does other things beside: the
	// plan is that of the page's text.
	aCommand = 12 * time.Second
)

// planned reads the minutes of the plan from the course's page: of each lesson, and of exercises.
func planned(t *testing.T) (lessons map[int]time.Duration, exercises time.Duration) {
	t.Helper()
	page, err := stocklock.Pages.ReadFile(courseFolder + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	lessons = map[int]time.Duration{}
	ends := time.Duration(0)
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| (lesson (\d)|exercise)`).FindAllStringSubmatch(string(page), -1) {
		from, _ := strconv.Atoi(row[1])
		takes, _ := strconv.Atoi(row[2])
		if time.Duration(from)*time.Minute != ends {
			t.Errorf("the plan's row %q begins at minute %d, want %s", row[0], from, ends)
		}
		ends += time.Duration(takes) * time.Minute
		if row[4] == "" {
			exercises += time.Duration(takes) * time.Minute
			continue
		}
		lesson, _ := strconv.Atoi(row[4])
		lessons[lesson] = time.Duration(takes) * time.Minute
	}
	if ends != 90*time.Minute || len(lessons) < 8 || exercises == 0 {
		t.Fatalf("the plan has %d lessons, %s of exercises, and ends after %s, want 90 minutes", len(lessons), exercises, ends)
	}
	return lessons, exercises
}

// TestThePlanOfAClass carries out the plan of 90 minutes from the page alone, in a teacher's browser and on
// three phones: each step of each lesson, its predictions, its commands, a schedule by hand, its questions.
func TestThePlanOfAClass(t *testing.T) {
	minutes, exercises := planned(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + net.JoinHostPort(browsertest.Elsewhere, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	class, err := CheckClassroom(at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Shop: catalogtest.Shop(t), Token: testToken, Classroom: class, Again: trial.Result.Name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() { end(); <-ended })

	teacher := browsertest.Open(t, 20*time.Minute)
	home := "http://" + listener.Addr().String() + "/"
	teacher.Run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(home+"#token="+testToken))
	teacher.Until(matrixShown)
	var phones []*browsertest.Page
	for range 3 {
		phone := teacher.Beside()
		phone.Run(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), chromedp.Navigate(at))
		phone.Until(`document.getElementById('asked') && location.pathname === '/vote'`)
		phones = append(phones, phone)
	}
	watcher := teacher.Beside()
	watcher.Run(chromedp.Navigate(home + "#/step/none/2"))
	watcher.Until(`document.querySelector('.step-place .soft')`)
	var course courseInfo
	if err := json.Unmarshal(courses[".md"]().body, &course); err != nil {
		t.Fatal(err)
	}
	teacher.Run(click(`nav a[href="#/lessons"]`))
	teacher.Until(`document.querySelector('.prose table')`)
	whole := exercises
	for number := range len(minutes) {
		l := course.Lessons[number]
		took := time.Duration(0)
		teacher.Run(click(fmt.Sprintf(`.prose table a[href="#/lessons/%d"]`, number)))
		teacher.Until(fmt.Sprintf(`document.querySelector('h1').textContent === %q`, l.Title))
		votes := 0
		for _, step := range l.Steps {
			teacher.Until(fmt.Sprintf(`location.hash === '#/lessons/%d/%s' || %q === 'read'`, number, step.Kind, step.Kind))
			teacher.Until(fmt.Sprintf(`document.querySelectorAll('.command-card').length === %d`, commandsOf(step)))
			took += time.Duration(step.Seconds) * time.Second
			for i, part := range step.Parts {
				if part.Action == nil {
					continue
				}
				card := fmt.Sprintf(`document.querySelectorAll('main > .view > *')[%d]`, 3+i)
				if votes == 0 && browsertest.Says[bool](teacher, card+`.querySelector('.ask-class') !== null`) {
					votes++
					took += aPrediction
					voteOf(t, teacher, phones, card)
				}
				begun := time.Now()
				teacher.Run(chromedp.Evaluate(card+`.querySelector('.begin').click()`, nil))
				came := whatCame(t, teacher, part, card)
				for _, want := range mustShow(part) {
					if !strings.Contains(came, want) {
						t.Errorf("lesson %d, %s: the page shows %q, want %q", number, part.Line, came, want)
					}
				}
				t.Logf("lesson %d, %s: %s", number, part.Line, time.Since(begun).Round(time.Second))
				took += aCommand
			}
			if step.Kind == "questions" {
				asked := browsertest.Says[int](teacher, `[...document.querySelectorAll('.prose details')].map(d => { d.open = true; return d; }).filter(d => d.innerText.length > 40).length`)
				if asked < 2 {
					t.Errorf("lesson %d has %d questions with answers", number, asked)
				}
				took += time.Duration(asked) * aQuestion
			}
			teacher.Run(click("#next-step"))
			if step.Kind == "run" && browsertest.Says[bool](teacher, `location.hash.endsWith('/step')`) {
				stepByHand(teacher)
				took += aCommand
				watcher.Until(`document.getElementById('ending') && document.querySelectorAll('.step-table tbody tr').length > 1`)
				if n := browsertest.Says[int](watcher, `document.querySelectorAll('main button:not(:disabled):not([hidden])').length`); n != 0 {
					t.Errorf("who watches has %d buttons that would be refused", n)
				}
				teacher.Run(goTo(fmt.Sprintf("#/lessons/%d/explain", number)))
			}
		}
		if votes == 0 {
			t.Errorf("lesson %d: nothing to vote on", number)
		}
		t.Logf("lesson %d: %s of %s", number, took.Round(time.Second), minutes[number])
		if took > minutes[number] {
			t.Errorf("lesson %d takes %s, and the plan gives it %s", number, took.Round(time.Second), minutes[number])
		}
		whole += minutes[number]
		teacher.Run(goTo("#/lessons"))
		teacher.Until(`document.querySelector('.prose table')`)
	}
	if whole != 90*time.Minute {
		t.Errorf("the plan takes %s, want 90 minutes", whole)
	}
	teacher.Clean(home)
	watcher.Clean(home)
	for _, phone := range phones {
		phone.Clean(at)
	}
}

func commandsOf(s stepInfo) (n int) {
	for _, p := range s.Parts {
		if p.Line != "" {
			n++
		}
	}
	return n
}

// voteOf has each phone vote, one of them twice, and looks for their bars before the run.
func voteOf(t *testing.T, teacher *browsertest.Page, phones []*browsertest.Page, card string) {
	t.Helper()
	teacher.Run(chromedp.Evaluate(card+`.querySelector('.ask-class').click()`, nil))
	teacher.Until(card + `.querySelector('.qr path') !== null`)
	for i, phone := range phones {
		phone.Until(`document.querySelector('.guess:not(:disabled)')`)
		for _, word := range [][]string{{"held"}, {"oversold"}, {"held", "oversold"}}[i] {
			phone.Run(click("[data-word=" + word + "]"))
			phone.Until(fmt.Sprintf(`document.querySelector('[data-word=%s]').getAttribute('aria-pressed') === 'true'`, word))
		}
	}
	shown := func(word string) string { return card + `.querySelector('[data-votes=` + word + `] b').textContent` }
	teacher.Until(shown("oversold") + ` === '2' && ` + shown("held") + ` === '1'`)
	if strings.Contains(browsertest.Says[string](teacher, `location.hash`), "/lessons/4/") {
		screenshot(t, teacher, "class")
		screenshot(t, phones[0], "phone")
	}
	if came := browsertest.Says[int](teacher, card+`.querySelector('.result').childElementCount`); came != 0 {
		t.Errorf("the result is there before the votes")
	}
}

// whatCame waits for what a command came to.
func whatCame(t *testing.T, teacher *browsertest.Page, part partInfo, card string) string {
	t.Helper()
	var done string
	switch a := part.Action; {
	case a.Cells != nil:
		done = fmt.Sprintf(`%s.querySelectorAll('.ran .v').length === %d`, card, len(a.Cells))
	case a.Explore:
		done = fmt.Sprintf(`%s.querySelectorAll('.explored').length === %d`, card, len(a.Strategies))
	default:
		done = card + `.querySelector('.ending')`
	}
	for giveUp := time.Now().Add(4 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if browsertest.Says[bool](teacher, `!!(`+done+`)`) {
			return browsertest.Says[string](teacher, card+`.querySelector('.result').innerText`)
		}
		if said := browsertest.Says[string](teacher, card+`.querySelector('.said').textContent`); said != "" || time.Now().After(giveUp) {
			t.Fatalf("%s: %q, the page shows %q", part.Line, said, browsertest.Says[string](teacher, card+`.innerText`))
		}
	}
}

var (
	ends     = regexp.MustCompile(`(?m)^(held|oversold \d+|stuck|lied \d+|left \d+)\b.*: `)
	searches = regexp.MustCompile(`(?m)^(\S+), \d customers.*: \d+ runs, (\d+) bad`)
	failing  = regexp.MustCompile(`(?m)^  (oversold|stuck|lied|left)\b`)
	ranCells = regexp.MustCompile(`(?m)^ (?:[a-z-]+)(?::[a-z-]+)? .* (held|oversold|stuck|lied)(?: \d+)?$`)
)

// mustShow are words of what the page must show: those of the output in the lesson that do not differ from run
// to run.
func mustShow(part partInfo) (all []string) {
	if part.Action.Explore {
		for _, m := range searches.FindAllStringSubmatch(part.Output, -1) {
			if m[2] == "0" {
				all = append(all, " 0 bad")
			} else {
				all = append(all, m[1]+":", failing.FindStringSubmatch(part.Output)[1])
			}
		}
		return all
	}
	if part.Action.Cells == nil {
		last := ends.FindAllStringSubmatch(part.Output, -1)
		return append(all, last[len(last)-1][1])
	}
	for _, m := range ranCells.FindAllStringSubmatch(part.Output, -1) {
		all = append(all, m[1])
	}
	return all
}

// stepByHand steps through the first strategy that the lesson offers, one choice after another.
func stepByHand(teacher *browsertest.Page) {
	teacher.Until(`document.querySelector('.prose .button')`)
	teacher.Run(click(".prose .button"))
	for range 30 {
		teacher.Until(`document.getElementById('ending') && document.documentElement.dataset.fetching === '0'`)
		if browsertest.Says[bool](teacher, `document.getElementById('ending').dataset.ended === 'yes' || !document.querySelector('.next .choice')`) {
			return
		}
		was := browsertest.Says[string](teacher, `location.hash`)
		teacher.Run(click(".next .choice"))
		teacher.Until(fmt.Sprintf(`location.hash !== %q && document.querySelector('.playing') === null`, was))
	}
}

// TestALinkFromAnotherSiteIsTheSamePhone: whoever comes to the vote again, by a link in a chat, has one vote.
func TestALinkFromAnotherSiteIsTheSamePhone(t *testing.T) {
	t.Parallel()
	s := unservedClass(t)
	listener := httptest.NewServer(s.Handler())
	t.Cleanup(listener.Close)
	s.class.url.Host = browsertest.Elsewhere
	at := strings.Replace(listener.URL, "127.0.0.1", browsertest.Elsewhere, 1) + votePage
	if _, err := s.ask(subject{cellName: cellName{"reentrant", "pause"}}); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, time.Minute)
	for _, word := range []string{"held", "oversold"} {
		b.Run(chromedp.Navigate(`data:text/html,<a id="vote" href="` + at + `">vote</a>`))
		if _, err := chromedp.RunResponse(b, click("#vote")); err != nil {
			t.Fatal(err)
		}
		b.Until(`document.querySelector('[data-word=` + word + `]:not(:disabled)')`)
		b.Run(click("[data-word=" + word + "]"))
		b.Until(`document.querySelector('[data-word=` + word + `]').getAttribute('aria-pressed') === 'true'`)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if votes := s.class.tally().Votes; len(votes) != 1 || votes["oversold"] != 1 {
		t.Errorf("the votes are %v, want oversold once", votes)
	}
}

// TestAPhoneThatWasRefused hears what is asked as soon as there is a place.
func TestAPhoneThatWasRefused(t *testing.T) {
	t.Parallel()
	class, err := CheckClassroom("http://class.example")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Shop: &catalog.Catalog{Strategies: ladder.Describe(ladder.All())}, Token: testToken, Classroom: class})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(subject{cellName: cellName{"none", "pause"}}); err != nil {
		t.Fatal(err)
	}
	for range maxPhones {
		s.class.heard <- struct{}{}
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s) + "vote"))
	b.Until(`document.getElementById('cut')`)
	<-s.class.heard
	b.Until(`document.querySelector('.guess') && !document.getElementById('cut')`)
	b.Run(chromedp.Focus("[data-word=held]"), chromedp.KeyEvent(kb.Enter)) // what is voted has the focus
	b.Until(`document.querySelector('[data-word=held]').getAttribute('aria-pressed') === 'true' && document.activeElement.dataset.word === 'held'`)
}
