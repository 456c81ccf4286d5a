package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// JUnit writes the cells as test cases, as CI systems read them. A surprise is a failure. Cells that are
// missing are an error: without it, what is there would pass for the whole.
func (r Report) JUnit(w io.Writer) error {
	type said struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type test struct {
		Class   string  `xml:"classname,attr"`
		Name    string  `xml:"name,attr"`
		Seconds float64 `xml:"time,attr"`
		Failure *said   `xml:"failure"`
		Error   *said   `xml:"error"`
		Skipped *said   `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Time     string   `xml:"timestamp,attr"`
		Cases    []test   `xml:"testcase"`
	}{Name: r.Environment.Command, Tests: len(r.Cells), Time: r.Environment.Time,
		Failures: len(r.Surprises()), Skipped: len(cellsThat(func(c trial.Result) bool { return c.Verdict == verdict.Skipped }, r.Cells))}
	for _, c := range r.InOrder() {
		t := test{Class: c.Scenario, Name: c.Name(), Seconds: c.Seconds}
		switch {
		case c.Surprise():
			t.Failure = &said{fmt.Sprintf("%s, expected %s", counted(words.English, c), c.Expected), Terminal{}.sentence(c) + "\nagain: " + c.Replay}
		case c.Verdict == verdict.Skipped:
			t.Skipped = &said{Message: cmp.Or(c.Problem, word(words.English, c))}
		}
		suite.Cases = append(suite.Cases, t)
	}
	if r.Interrupted {
		suite.Tests, suite.Errors = suite.Tests+1, 1
		suite.Cases = append(suite.Cases, test{Class: "report", Name: "all cells", Error: &said{Message: words.English.Say(words.Of("report.interrupted"))}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
