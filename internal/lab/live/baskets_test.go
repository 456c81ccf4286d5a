package live

import (
	"slices"
	"testing"

	"stocklock/internal/lab/words"
	"stocklock/internal/testserver"
)

// TestCellsOfAFewRun: cells of several items and of reservations run one after the other, with their stories.
func TestCellsOfAFewRun(t *testing.T) {
	testserver.NeedsServers(t)
	s := serve(t, Options{})
	if _, err := s.enqueue([]wanted{{cellName{"none", "crossed"}, 1, 0}}, nil); err == nil {
		t.Error("a strategy that sells one item at a time runs under crossed")
	}
	var cells []wanted
	for _, name := range []cellName{{"locks-unsorted", "crossed"}, {"locks-sorted", "crossed"},
		{"reservation-rows", "held-units"}, {"reservation-overwritten", "release-beside-confirmation"}, {"reservation", "stolen-reference"}} {
		cells = append(cells, wanted{name, 1, 0})
	}
	added, err := s.enqueue(cells, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"left", "held", "oversold", "unserved", "held"} {
		r := s.finished(t, added[i].ID)
		if string(r.Verdict) != want || r.Surprise || len(r.result.Story) == 0 {
			t.Errorf("%s is %s, want %s: %q", r.Strategy, r.Verdict, want, r.result.Story)
		}
		for _, told := range r.told {
			if words.Chinese.Say(told) == told.String() {
				t.Errorf("%s is not said in Chinese", told)
			}
		}
		if !slices.EqualFunc(r.told, r.result.Story, func(said, story words.Text) bool { return said.String() == story.String() }) {
			t.Errorf("the page is told %q, and the result %q", r.told, r.result.Story)
		}
	}
}
