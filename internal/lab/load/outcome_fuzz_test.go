package load

import "testing"

// FuzzClassify: only a 201 counts as sold, whatever the body, and every answer has an outcome.
func FuzzClassify(f *testing.F) {
	for status, body := range map[int]string{201: `{"id":1}`, 409: `{"type":"/problems/sold-out"}`, 503: `{"type":"busy"}`, 502: `<html>`, 0: ``, 500: `{"type":7}`} {
		f.Add(status, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		switch got := classify(status, body, nil); {
		case got == "":
			t.Errorf("%d %q is nothing", status, body)
		case (got == Sold) != (status == 201):
			t.Errorf("%d %q counts as %s", status, body, got)
		case status == 0 && got != Unknown:
			t.Errorf("no answer counts as %s", got)
		}
	})
}
