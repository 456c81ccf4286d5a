package report

import (
	"html/template"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// Interleaving draws an explanation: as a whole, and closer where the whole is too coarse. Either
// is empty where there is nothing to draw. The colours are in [Style].
func Interleaving(x *explain.Explanation, in explain.Language) (whole, closer template.HTML) {
	if len(x.Lanes) == 0 {
		return "", ""
	}
	sentence := in.Say(x.Why...)
	whole = lanesOf(x, x.FromMS, x.ToMS, in).drawn(sentence, in)
	if from, to, worth := closeUp(x); worth {
		closer = lanesOf(x, from, to, in).drawn(sentence, in)
	}
	return whole, closer
}

// OverTime draws the outcomes and the latency of a cell over time.
func OverTime(t trial.Timeline, in explain.Language) (outcomes, latency template.HTML) {
	return outcomesChart(t, in), latencyChart(t, in)
}

// Style is the style sheet of the page, of its verdicts and of its drawings.
func Style() []byte {
	style, err := pageFiles.ReadFile("html/style.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return append([]byte(verdict.Style()), style...)
}
