package drawing

import (
	"encoding/json"
	"fmt"
	"strings"

	"stocklock/internal/lab/words"
)

// Words are what drawings say. A drawing has their numbers instead, such as {3}: it is drawn once for the readers of all
// languages. The zero value has none.
type Words struct {
	Texts   [][]words.Text // by number, what is said one after the other
	numbers map[string]int
}

// Say returns the number of what some texts say. What is the same in every language needs none.
func (w *Words) Say(texts ...words.Text) string {
	if len(texts) == 1 && texts[0].Key == "" && !strings.Contains(texts[0].Words, "{") {
		return texts[0].Words
	}
	said, err := json.Marshal(texts)
	if err != nil {
		panic(fmt.Sprintf("drawing: a text: %v", err)) // its facts are of a wrong type
	}
	n, known := w.numbers[string(said)]
	if !known {
		if w.numbers == nil {
			w.numbers = map[string]int{}
		}
		n = len(w.Texts)
		w.numbers[string(said)], w.Texts = n, append(w.Texts, texts)
	}
	return fmt.Sprintf("{%d}", n)
}
