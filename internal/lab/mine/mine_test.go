package mine

import (
	"strings"
	"testing"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/ladder"
)

// TestEachAnswerLeadsToACellThatFails, and to a twin that holds in the same scenario.
func TestEachAnswerLeadsToACellThatFails(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range Questions() {
		for _, a := range q.Answers {
			under, err := scenario.ByName(a.Scenario)
			if err != nil {
				t.Errorf("%s: %v", a.Says(), err)
				continue
			}
			expected := func(name string) verdict.Kind {
				of, err := ladder.ByName(name)
				if err != nil {
					t.Errorf("%s: %v", a.Says(), err)
					return ""
				}
				return under.Expected(of.Describe()).Verdict
			}
			if v := expected(a.Strategy); v != "" && !verdict.Of(v).Bad {
				t.Errorf("%s:%s is expected to be %s, and is to break", a.Strategy, a.Scenario, v)
			}
			if v := expected(a.Twin); v != "" && v != verdict.Held {
				t.Errorf("%s mends %s under %s, where it is expected to be %s", a.Twin, a.Strategy, a.Scenario, v)
			}
			if seen[a.Strategy+":"+a.Scenario] {
				t.Errorf("two answers lead to %s:%s", a.Strategy, a.Scenario)
			}
			seen[a.Strategy+":"+a.Scenario] = true
		}
	}
}

// TestEverythingIsSaidInBothLanguages, with the same code marked.
func TestEverythingIsSaidInBothLanguages(t *testing.T) {
	check := func(of words.Text) {
		t.Helper()
		en, zh := words.English.Say(of), words.Chinese.Say(of)
		if en == of.Key || zh == of.Key || en == zh || strings.ContainsAny(en+zh, "\n|{") {
			t.Errorf("%q, %q: want one line in each language", en, zh)
		}
		if strings.Count(en, "`") != strings.Count(zh, "`") || strings.Count(en, "`")%2 != 0 {
			t.Errorf("%q, %q: the code in them differs", en, zh)
		}
	}
	if n := len(Questions()); n != 5 {
		t.Errorf("%d questions, and the pages say five", n)
	}
	languages := map[string]bool{}
	for _, q := range Questions() {
		check(q.Ask())
		check(q.Look())
		for _, a := range q.Answers {
			check(a.Says())
			check(a.Why())
			languages[a.Language] = true
			if lines := strings.Count(a.Code, "\n"); !strings.HasSuffix(a.Code, "\n") || lines > 12 {
				t.Errorf("%s: its code has %d lines, want a few", a.Says(), lines)
			}
			for line := range strings.Lines(a.Code) {
				if len(line) > 130 {
					t.Errorf("%s: a line of code is %d characters long", a.Says(), len(line))
				}
			}
		}
	}
	if len(languages) < 5 {
		t.Errorf("the snippets are in %v alone", languages)
	}
}

// TestKnownLeavesOutWhatIsNotThere: a shop with strategies of its own has fewer answers.
func TestKnownLeavesOutWhatIsNotThere(t *testing.T) {
	got := Known(func(of, under string) bool {
		_, err := ladder.ByName(of)
		return err == nil && under == "nested" && of != "none"
	})
	if len(got) != 1 || len(got[0].Answers) != 1 || got[0].Answers[0].Scenario != "nested" {
		t.Errorf("of a shop whose only scenario is nested: %+v", got)
	}
	if len(Questions()[4].Answers) < 2 {
		t.Error("the table has changed")
	}
}
