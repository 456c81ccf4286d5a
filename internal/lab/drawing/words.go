package drawing

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/words"
)

// Words are what drawings say, in every language. A drawing has their numbers instead, such as {3}: it is drawn once for all
// its readers. The zero value has none.
type Words struct {
	In      map[string][]string // by the name of the language
	numbers map[string]int
}

// Say returns the number of what some texts say.
func (w *Words) Say(texts ...words.Text) string {
	return w.Each(func(in *words.Language) string { return in.Say(texts...) })
}

// Each returns the number of something that is said in each language, or what all of them say.
func (w *Words) Each(say func(in *words.Language) string) string {
	var said []string
	for _, in := range words.Languages {
		said = append(said, say(in))
	}
	if same := slices.Compact(slices.Clone(said)); len(same) == 1 && !strings.Contains(same[0], "{") {
		return same[0] // it needs no number
	}
	all := strings.Join(said, "\x00")
	n, known := w.numbers[all]
	if !known {
		if w.In == nil {
			w.In, w.numbers = map[string][]string{}, map[string]int{}
		}
		n = len(w.numbers)
		w.numbers[all] = n
		for i, in := range words.Languages {
			w.In[in.String()] = append(w.In[in.String()], said[i])
		}
	}
	return fmt.Sprintf("{%d}", n)
}
