package trial

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/lab/load"
)

// TestAShopThatRestartsIsSeenByItsReadiness has a shop that breaks a connection and is not ready for
// a while.
func TestAShopThatRestartsIsSeenByItsReadiness(t *testing.T) {
	var ready atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	a := attackOf(Options{})
	a.Shops = []Shop{{URL: server.URL}}
	a.ctx = t.Context()
	died := &Customer{Answer: load.Answer{Err: io.EOF}}
	a.awaitReturn(died)
	a.awaitReturn(died) // of another customer
	time.Sleep(5 * askReady)
	if now := a.progress.now(); now.halted(1) && time.Since(now.last) > 0 {
		t.Error("nothing is sold while the shop is away, and that counts as stuck")
	}
	ready.Store(true)
	a.background.Wait()
	i := a.record.interventions
	if len(i) != 1 || i[0].Shop != "shop 1" || i[0].Until.Sub(i[0].From) < 4*askReady {
		t.Errorf("noted %+v, want that shop 1 was dead until it was ready", i)
	}
	a.awaitReturn(died) // it is ready: only the connection broke
	a.awaitReturn(&Customer{Answer: load.Answer{Outcome: load.Sold}})
	a.background.Wait()
	if len(a.record.interventions) != 1 {
		t.Errorf("noted %+v, want nothing more", a.record.interventions)
	}
	if broken(load.Answer{Err: &timeout{}}) || !broken(load.Answer{Err: errors.New("refused")}) {
		t.Error("a shop that is stopped does not break connections")
	}
}

type timeout struct{}

func (*timeout) Error() string   { return "late" }
func (*timeout) Timeout() bool   { return true }
func (*timeout) Temporary() bool { return false }
