package live

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// value is what said of page/words.js takes for a value.
var value = regexp.MustCompile(`"[^"]*"|-?\b\d[\w.]*|\b(?:\w+:)?[ABC](?:\.[\w-]+)?\b`)

// TestWhatTheServerSaysIsSaidInChinese: what somebody can come to by using the page.
func TestWhatTheServerSaysIsSaidInChinese(t *testing.T) {
	s := unserved(t)
	zh := wordsOf(t, "zh")
	all := []string{errFull.Error(), errDropped.Error(), busyWords}
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
		err := s.checkLoad(&c)
		if err == nil {
			t.Fatalf("the comparison %+v is taken", c)
		}
		all = append(all, err.Error())
	}
	for _, text := range all {
		saidInChinese(t, zh, text)
	}
}

func saidInChinese(t *testing.T, zh map[string]string, text string) {
	t.Helper()
	n := 0
	phrase := "said." + value.ReplaceAllStringFunc(text, func(string) string { n++; return fmt.Sprintf("{%d}", n) })
	if !strings.ContainsFunc(zh[phrase], func(r rune) bool { return r > 0x2e80 }) {
		t.Errorf("%q is not said in Chinese: %q", text, phrase)
	}
}
