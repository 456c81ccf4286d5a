package strategy

import (
	"regexp"
	"strings"
	"testing"
)

func TestEveryStrategyDescribesItself(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, s := range All() {
		if !name.MatchString(s.Name) {
			t.Errorf("strategy %q: the name must be lower-case words joined by hyphens", s.Name)
		}
		if seen[s.Name] {
			t.Errorf("strategy %q is listed twice", s.Name)
		}
		seen[s.Name] = true
		for field, text := range map[string]string{"Doc": s.Doc, "Source": s.Source, "Guard": s.Guard, "Decrement": s.Decrement} {
			if text == "" || strings.ContainsAny(text, "\n|") {
				t.Errorf("strategy %s: %s is %q, want one line that fits into a table", s.Name, field, text)
			}
		}
		if s.build == nil {
			t.Errorf("strategy %s cannot be built", s.Name)
		}
		if got, err := ByName(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("ByName(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
}

func TestByNameSaysWhatThereIs(t *testing.T) {
	_, err := ByName("setxn")
	if err == nil || !strings.Contains(err.Error(), `"setxn"`) || !strings.Contains(err.Error(), "set-ex-nx") {
		t.Errorf("ByName of a typo = %v, want the typo and the names there are", err)
	}
}

func TestPropertyNames(t *testing.T) {
	for _, p := range Properties() {
		if p.String() == "" || strings.Contains(p.String(), ",") || p.Doc() == "" {
			t.Errorf("property %b: name %q, doc %q, want one of each", p, p, p.Doc())
		}
	}
	if got := (Exclusive | ClockFree).String(); got != "exclusive, clock-free" {
		t.Errorf("String of a set = %q", got)
	}
	if (Exclusive | ClockFree).Has(Exclusive|Renews) || !(Exclusive | ClockFree).Has(ClockFree) {
		t.Error("Has must want all of what it is asked for")
	}
}
