package trial

import (
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/explain"
)

// record is what was done to the testbed, and how its locks changed. It is safe for concurrent use.
type record struct {
	mu            sync.Mutex // guards the rest
	interventions []explain.Intervention
	changes       []explain.Change
	watch         Watch // also told of each
}

// wholeTestbed is the shop of an intervention that concerns more than one.
const wholeTestbed = -1

// intervention notes what is done to a shop, or once to the whole testbed, until over is called.
func (r *record) intervention(what string, shop int) (over func()) {
	intervention := explain.Intervention{From: time.Now(), What: what}
	if shop != wholeTestbed {
		intervention.Shop = explain.ShopName(shop)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := func(i explain.Intervention) bool { return i.What == what }
	if shop == wholeTestbed && slices.ContainsFunc(r.interventions, known) {
		return func() {}
	}
	at := len(r.interventions)
	r.interventions = append(r.interventions, intervention)
	r.watch.see(intervention)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.interventions[at].Until = time.Now()
		r.watch.see(r.interventions[at])
	}
}

// keys are the keys that have changed so far.
func (r *record) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for _, c := range r.changes {
		if c.Key != "" && !slices.Contains(keys, c.Key) {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func (r *record) changed(c explain.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	r.watch.see(c)
}
