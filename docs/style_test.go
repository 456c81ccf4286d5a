//go:build lab

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// The limits of English prose: sentences with more words than this, of all sentences and of those of a page. A page
// may always have two.
const (
	longWords   = 25
	longOfAll   = 0.03
	longOfAPage = 0.05
)

// habits are phrases that have a plainer one, and what to write in their place. CONTRIBUTING has the list of words.
var habits = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\ball the same\b`), "still"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "without a limit, or never ends"},
	{regexp.MustCompile(`(?i)\bfor want of\b`), "for lack of, or where there is no"},
	{regexp.MustCompile(`(?i)\bof (?:its|their|his|her|one's|my|your) own\b`), "its own, before the noun"},
	{regexp.MustCompile(`(?i)\bthat which\b`), "the noun"},
	{regexp.MustCompile(`(?i)\bwhat (?:was|were) [a-z]+(?:ed|en)\b`), "the noun"},
	{regexp.MustCompile(`(?i)\bpatience\b`), "timeout"},
	{regexp.MustCompile(`(?i)\bcrowds?\b`), "many clients, or many customers"},
	{regexp.MustCompile(`(?i)\bconvicts?\b`), "finds"},
	{regexp.MustCompile(`(?i)\b(?:the|a|its|each|no) plays?\b`), "attack, or run"},
	{regexp.MustCompile(`(?i)\bcame in behind\b`), "followed"},
	{regexp.MustCompile(`(?i)\btold (?:busy|sold)\b`), "rejected as busy, answered as sold"},
}

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	comment    = regexp.MustCompile(`(?s)<!--.*?-->|</?[a-z][^>]*>`)
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	target     = regexp.MustCompile(`\]\([^)]*\)|\[[0-9]\]: .*`)
	bullet     = regexp.MustCompile(`^ *(?:[-*>] |[0-9]+\. |#+ )`)
	sentence   = regexp.MustCompile(`[.?!][)"”*]*(?:\s|$)`)
	aWord      = regexp.MustCompile(`[\pL\pN]`)
)

// prose is the English prose of a page, in paragraphs: neither tables nor code, nor what is made.
func prose(page string) []string {
	page = facts.ReplaceAllString(made.ReplaceAllString(page, ""), "$1\n")
	page = comment.ReplaceAllString(fence.ReplaceAllString(page, "\n"), "")
	page = target.ReplaceAllString(inlineCode.ReplaceAllString(page, "code"), "]")
	var all []string
	begun := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		begins := bullet.MatchString(line)
		switch {
		case line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "!["):
			begun = false
			continue
		case begun && !begins:
			all[len(all)-1] += " " + line
		default:
			all = append(all, bullet.ReplaceAllString(line, ""))
		}
		begun = !strings.HasPrefix(line, "#")
	}
	return all
}

// TestProseIsPlain counts long sentences, and finds habits. The changelog tells of what there was, and peers.md is made,
// with quotations.
func TestProseIsPlain(t *testing.T) {
	sentences, long := 0, 0
	for _, page := range pages(t) {
		if strings.HasSuffix(page, chinese) || page == "CHANGELOG.md" || page == "docs/peers.md" {
			continue
		}
		ofPage := 0
		var tooLong []string
		for _, paragraph := range prose(read(t, page)) {
			for _, h := range habits {
				if found := h.phrase.FindString(paragraph); found != "" {
					t.Errorf("%s: %q: write %s: %s", page, found, h.instead, paragraph)
				}
			}
			for _, s := range sentence.Split(paragraph, -1) {
				words := 0
				for _, word := range strings.Fields(s) {
					if aWord.MatchString(word) {
						words++
					}
				}
				if words > 0 {
					ofPage++
				}
				if words > longWords {
					tooLong = append(tooLong, s)
				}
			}
		}
		sentences, long = sentences+ofPage, long+len(tooLong)
		if len(tooLong) > 2 && float64(len(tooLong)) > longOfAPage*float64(ofPage) {
			t.Errorf("%s has %d sentences of %d with more than %d words:\n%s", page, len(tooLong), ofPage, longWords, strings.Join(tooLong, "\n"))
		}
	}
	if sentences < 1500 {
		t.Errorf("found only %d sentences", sentences)
	}
	if float64(long) >= longOfAll*float64(sentences) {
		t.Errorf("%d of %d sentences have more than %d words, want less than %g %%", long, sentences, longWords, 100*longOfAll)
	}
	t.Logf("%d of %d sentences have more than %d words", long, sentences, longWords)
}

// TestProse: what is counted.
func TestProse(t *testing.T) {
	got := prose("# Head\n\nOne `A b c` [two](x.md)\nthree. Four.\n\n- five\n  six\n- seven\n\n| no | no |\n\n```\nno\n```\n<!-- no -->\n")
	want := []string{"Head", "One code [two] three. Four.", "five six", "seven"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the prose is %q, want %q", got, want)
	}
}
