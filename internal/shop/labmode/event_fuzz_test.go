package labmode

import (
	"strings"
	"testing"
)

// FuzzReadEvents: a trace is read or refused, line by line.
func FuzzReadEvents(f *testing.F) {
	f.Add(`{"t":1,"shop":"a","request":"r","item":7,"strategy":"none","point":"read","stock":3}` + "\n")
	f.Add(`{"t":1.5}`)
	f.Add("{}\n\n{}")
	f.Add(`{"t":1,"T":2,"shop":null,"item":-1}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, trace string) {
		events, err := ReadEvents(strings.NewReader(trace))
		if err == nil && len(events) > strings.Count(trace, "\n")+1 {
			t.Errorf("%d events in %q", len(events), trace)
		}
		for _, e := range events {
			for _, known := range []string{"t", "shop", "request", "item", "strategy", "run", "point"} {
				if _, ok := e.Facts[known]; ok {
					t.Errorf("%q is a fact in %q", known, trace)
				}
			}
		}
	})
}
