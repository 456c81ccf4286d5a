package shoptest

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
)

// TestACrowdIsShed opens more connections than a shop has places. What it does not sell it turns away,
// with 503 or by closing the connection, and without growing.
func TestACrowdIsShed(t *testing.T) {
	const connections, room, most = 3000, 200, 300 << 20
	l := openShops(t, 1, "SHOP_MAX_IN_FLIGHT", fmt.Sprint(room))
	item := l.item(1 << 40)
	crowd := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	t.Cleanup(crowd.CloseIdleConnections)
	var answers [600]atomic.Int64
	var buying sync.WaitGroup
	for range connections {
		buying.Go(func() {
			status := 0
			if answer := postBy(t.Context(), crowd, l.shops[0], item, http.Header{}, ""); answer != nil {
				status = answer.StatusCode
			}
			answers[status].Add(1)
		})
	}
	buying.Wait()
	for status := range answers {
		n := answers[status].Load()
		if n > 0 && status != 0 && status != http.StatusCreated && status != http.StatusServiceUnavailable {
			t.Errorf("%d requests were answered %d", n, status)
		}
	}
	sold, shed := answers[http.StatusCreated].Load(), answers[http.StatusServiceUnavailable].Load()+answers[0].Load()
	orders, err := l.store.ItemOrders(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	if gone := 1<<40 - l.left(item); int64(len(orders)) != sold || gone != sold || sold < room || shed == 0 {
		t.Errorf("%d answers with 201 and %d requests turned away, for %d orders and %d units that are gone", sold, shed, len(orders), gone)
	}
	if runtime.GOOS == "linux" {
		if peak := peakMemory(t, l.shops[0].PID()); peak > most {
			t.Errorf("the shop took %d MiB, want at most %d", peak>>20, most>>20)
		} else {
			t.Logf("%d sold, %d shed, at most %d MiB", sold, shed, peak>>20)
		}
	}
}

// peakMemory is the most that a process ever had in memory, in bytes.
func peakMemory(t *testing.T, pid int) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscanf(peak, "%d kB", &bytes); err != nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	return bytes << 10
}

// TestPoolsOfOneSell has the smallest pools that can be configured: sales wait for each other, and
// none waits for a connection that it has itself.
func TestPoolsOfOneSell(t *testing.T) {
	l := openShops(t, 1, "SHOP_MYSQL_POOL", "1", "SHOP_REDIS_POOL", "1")
	item := l.item(1000)
	var buying sync.WaitGroup
	for _, name := range []string{"fenced-relative", "reentrant", "for-update", "conditional", "get-lock"} {
		for range 5 {
			buying.Go(func() {
				got := post(t.Context(), l.shops[0], item, http.Header{labmode.StrategyHeader: {name}}, "")
				if got == nil || got.StatusCode != http.StatusCreated {
					t.Errorf("%s: %+v; the log: %s", name, got, l.shops[0].LogTail())
				}
			})
		}
	}
	buying.Wait()
	metric, err := rig.Metrics(t.Context(), l.shops[0].Internal)
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range []string{"go_sql_max_open_connections", "redis_pool_connections_max"} {
		if most := metric(pool); most != 1 {
			t.Errorf("%s is %g, want 1", pool, most)
		}
	}
}
