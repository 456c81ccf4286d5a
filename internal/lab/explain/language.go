package explain

import (
	"embed"
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"stocklock/internal/lab/verdict"
)

//go:embed words
var words embed.FS

// Language makes words of texts.
type Language struct{ phrases *template.Template }

// The languages, each of words/<name>.tmpl.
var (
	English = language("en")
	Chinese = language("zh") // Simplified Chinese

	Languages = []Language{English, Chinese}
)

// language reads the phrases of words/<name>.tmpl: one {{define}} for each.
func language(name string) Language {
	l := Language{template.New(name)}
	l.phrases.Funcs(template.FuncMap{
		"ms":           func(v float64) string { return ms(time.Duration(v * float64(time.Millisecond))) },
		"intervention": l.intervention,
		"replaced":     strings.ReplaceAll,
		"answer":       func(outcome string) string { return verdict.AnswerIn(name, outcome) },
	})
	template.Must(l.phrases.ParseFS(words, "words/"+name+".tmpl"))
	return l
}

// String returns the name of the language: en or zh.
func (l Language) String() string { return l.phrases.Name() }

// intervention makes words of an intervention's name, and of the size that may follow it. A name
// that the language does not know is said as it stands.
func (l Language) intervention(named string) (string, error) {
	name, size, _ := strings.Cut(named, " ")
	phrase := l.phrases.Lookup("intervention-" + name)
	if phrase == nil {
		return named, nil
	}
	var b strings.Builder
	err := phrase.Execute(&b, size)
	return b.String(), err
}

// Interventions are the words of all interventions, by their names. {size} is the size that may follow a name.
func (l Language) Interventions() map[string]string {
	said := map[string]string{}
	for _, phrase := range l.phrases.Templates() {
		if name, is := strings.CutPrefix(phrase.Name(), "intervention-"); is {
			said[name], _ = l.intervention(name + " {size}")
		}
	}
	return said
}

// Say makes words of texts, one after the other. A phrase that the language does not know, or whose
// facts are missing, is said by its name.
func (l Language) Say(texts ...Text) string {
	said := make([]string, len(texts))
	for i, t := range texts {
		said[i] = l.one(t)
	}
	return strings.ReplaceAll(strings.Join(said, " "), "。 ", "。") // Chinese sentences need no space
}

func (l Language) one(t Text) string {
	if t.Phrase == "" {
		return t.Words
	}
	var b strings.Builder
	if l.phrases.Lookup(string(t.Phrase)) == nil || l.phrases.ExecuteTemplate(&b, string(t.Phrase), t.Facts) != nil {
		return string(t.Phrase)
	}
	return b.String()
}

// milliseconds is a duration as a fact, to a hundredth.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*100) / 100
}

// ms is a duration in whole milliseconds, or in tenths where it is short.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
