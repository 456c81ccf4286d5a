package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// TestAPlayEndsWithItsFirstError: nothing is done after it. There are no customers, shops and servers that could.
func TestAPlayEndsWithItsFirstError(t *testing.T) {
	first := errors.New("the first")
	did := func() bool { t.Error("it went on"); return true }
	s := &script{Show: &trial.Show{Group: &trial.Group{}}, ctx: t.Context(), err: first}
	a := s.ask(trial.Wish{Name: "A"})
	s.await("it", did)
	s.see(did, words.Of("story.kept-out"))
	s.concluded(a)
	s.release(a)
	s.met(a)
	s.tell(words.Of("story.kept-out"))
	s.fail(errors.New("the second"))
	if a.Answered() || s.err != first {
		t.Errorf("%v: want %v, and no answer", s.err, first)
	}
	p := &servers{Group: &trial.Group{Shows: []*trial.Show{s.Show}}, ctx: t.Context(), err: first}
	p.do(func(context.Context) error { did(); return nil })
	p.each(func(context.Context, *trial.Show) error { did(); return nil })
	p.note(0, explain.IsKilled, explain.Facts{})
	p.kill(0)
	p.finish([]*trial.Customer{a})
	if all := p.oneEach(ownShop); len(all) > 0 || p.reads(s.Show, 0) != nil || p.err != first {
		t.Errorf("%v: %v, want no customers", p.err, all)
	}
}

func TestANameThatLooksAlikeIsNamed(t *testing.T) {
	for misspelled, meant := range map[string]string{
		"pausee": "pause", "puase": "pause", "crsh": "crash", "late_release": "late-release", "failovre": "failover",
		"no": "", "sleep": "", "": "",
	} {
		_, err := ByName(misspelled)
		if suggested := `did you mean "` + meant + `"? want one of contention, `; err == nil ||
			strings.Contains(err.Error(), suggested) != (meant != "") || strings.Contains(err.Error(), "did you mean") != (meant != "") {
			t.Errorf("%q: %v, want %q", misspelled, err, meant)
		}
	}
}
