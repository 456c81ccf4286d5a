package live

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/words"
)

// mayBeStrings are the fields that may be strings. A sentence of the lab is a [words.Text].
var mayBeStrings = strings.Fields(regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(`
	# names, numbers and words of lists
	topologyInfo.Name strategyInfo.Name strategyInfo.Telling scenarioInfo.Name scenarioInfo.Attacks Answer.Strategy
	Answer.Scenario Answer.Twin Answer.Language Cell.Strategy Cell.Scenario Question.Key Action.Strategies Action.Events
	Action.Schedule explored.Shortest comparison.Strategies comparison.Shape comparison.Others menu.Outcomes Form.Offered Fact.Name
	Number.Name Number.Text Number.Better Column.Kind Column.Name stepInfo.Kind Record.Strategy Choice.Step Order.Customer Row.Request Row.Shop Entry.Server Entry.Shop Entry.Request
	Entry.Customer Entry.Fault Entry.What Entry.Key run.Prediction run.Promised prediction.Word state.Preparing
	refusal.Problem TriedPart.Part Tried.Time savedInfo.Time detail.Holding Outcome.Answers Outcome.Ordinary State.Holder
	State.Has State.Waiting replay.Ignore ballot.Group
	# what a server, a program or a machine said
	Entry.Sent Entry.Answer State.Lock State.Kept Sent.Server Sent.Sent Sent.Answer Sent.Source
	Tried.OS partInfo.Output
	# commands, addresses and mark-up
	menu.Program detail.Again partInfo.Line Tried.Command TriedPart.Replay TriedPart.Mends strategyInfo.Page scenarioInfo.Page
	triedInfo.Page classInfo.URL classInfo.Code partInfo.HTML courseInfo.Plan Interleaving.Shapes replay.Shapes
	seen.Shapes seen.Lasting detail.Outcomes detail.Latency detail.Buckets position.Drawing
	# English of what has a file of its own, and the catalogue the other languages by its name
	strategyInfo.Doc strategyInfo.Guard strategyInfo.Decrement scenarioInfo.Doc topologyInfo.Doc
	ballot.Doc
	# in every language
	moment.What lessonInfo.Title Answer.Code
	# English, for who sends requests by hand
	refusal.Detail
	# of a service, by its file and by its author
	Tried.Service triedInfo.Service Tried.Unseen TriedPart.Reason
`, ""))

// TestWhatThePageShowsIsAText: what it gets has strings in these fields alone.
func TestWhatThePageShowsIsAText(t *testing.T) {
	found := map[string]bool{}
	var look func(of reflect.Type, at string, seen []reflect.Type)
	look = func(of reflect.Type, at string, seen []reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(of.Elem(), at, seen)
		case reflect.String:
			if of.PkgPath() == "" { // others have a type that says which words there are
				found[at] = true
			}
		case reflect.Struct:
			if of == reflect.TypeFor[words.Text]() || slices.Contains(seen, of) {
				return
			}
			for f := range of.Fields() {
				if f.IsExported() && f.Tag.Get("json") != "-" {
					within := of.Name() + "." + f.Name
					if f.Anonymous {
						within = at
					}
					look(f.Type, within, append(seen, of))
				}
			}
		}
	}
	for _, sent := range []any{menu{}, state{}, detail{}, refusal{}, attempt{}, seen{}, step.Position{}, report.Tried{}, courseInfo{}, ballot{}, explored{}} {
		look(reflect.TypeOf(sent), reflect.TypeOf(sent).Name(), nil)
	}
	for at := range found {
		if !slices.Contains(mayBeStrings, at) {
			t.Errorf("%s is a string: a sentence is a words.Text", at)
		}
	}
	for _, name := range mayBeStrings {
		if !found[name] {
			t.Errorf("%s is no string that is sent", name)
		}
	}
}

// TestWhatIsRefusedIsSaidInChinese: what somebody can come to by using the page.
func TestWhatIsRefusedIsSaidInChinese(t *testing.T) {
	s := unserved(t)
	all := []error{errFull, errDropped, errBusy}
	for _, c := range []comparison{
		{},
		{Strategies: []string{"none"}, Stock: -1},
		{Strategies: []string{"none"}, Shape: "many"},
		{Strategies: []string{"none"}, Shape: "200/long"},
		{Strategies: []string{"none"}, Shape: "50..600"},
		{Strategies: []string{"none"}, Shape: "100,200"},
		{Strategies: []string{"none"}, Shape: "200"},
		{Strategies: []string{"none"}, Shape: "200/1h"},
		{Strategies: []string{"none"}, Shape: "20/1s", Stock: 100},
	} {
		all = append(all, s.checkLoad(&c))
	}
	s.menu.Strategies[0].NotStepped = true
	for _, asked := range []stepRequest{{Strategy: s.menu.Strategies[0].Name, Customers: 2}, {Strategy: "conditional", Customers: 2, Schedule: "C.select"}} {
		_, err := s.checkStep(asked)
		all = append(all, err)
	}
	all = append(all, words.Of("refused.lacks", "strategy", "owner-delex", "why", words.Of("unfit.command", "commands", "DELEX", "version", "7")))
	cell := cellName{"none", "contention"}
	if _, err := s.enqueue([]wanted{{cell, 1, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	s.runs[0].State = running
	all = append(all, s.predict(prediction{cell, "held"}))
	for _, err := range all {
		content, _ := json.Marshal(words.Why(err))
		if text := words.Why(err); text.Key == "" || words.Chinese.Say(text) == words.English.Say(text) {
			t.Errorf("%v is sent as %s", err, content)
		}
	}
}
