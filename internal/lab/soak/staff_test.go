package soak

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy/declared"
)

// TestTheStaffGoesWithTheRun: whoever of the staff waits for a clear answer waits no longer when the run has ended.
func TestTheStaffGoesWithTheRun(t *testing.T) {
	asked := make(chan bool)
	first := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if r.Method != http.MethodGet {
			first()
		}
	}))
	defer server.Close()
	shop := &rig.TestbedShop{Shop: &rig.Shop{URL: server.URL, Staff: server.URL}}
	sold := &items{strategies: []declared.Strategy{{Mixable: true}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
	s := &staff{soak: &soak{testbed: &rig.Testbed{Shops: []*rig.TestbedShop{shop}}, customers: newCustomers(1, nil, []*items{sold})}, items: sold}
	selling, stop := context.WithCancel(t.Context())
	running, end := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- s.work(selling, running) }()
	<-asked
	stop()
	end()
	select {
	case err := <-over:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the run has ended, and the staff still waits")
	}
}
