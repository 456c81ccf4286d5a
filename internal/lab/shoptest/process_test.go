// Package shoptest tests the shop as a process: whole shops on real servers that are killed,
// stopped, restarted, and shut out.
package shoptest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/redisconn"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// house is a few real shop processes on one empty database.
type house struct {
	t     *testing.T
	shops []*rig.Shop
	store *stock.Store
	redis string
}

// processes builds the shop once, with the lab, and ends all that the tests leave running.
var processes *rig.Rig

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("every test starts shops: none runs with -short")
		os.Exit(0)
	}
	var err error
	if processes, err = rig.New(""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := processes.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// openShops starts shops with these SHOP_ settings, name and value by turns, besides the usual.
func openShops(t *testing.T, shops int, more ...string) *house {
	t.Helper()
	dsn, redis := testserver.Database(t), testserver.RedisAddr(t)
	l := &house{t: t, shops: make([]*rig.Shop, shops), store: stocktest.OpenAt(t, dsn), redis: redis}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		for _, shop := range l.shops {
			if shop != nil {
				_ = shop.Kill()
			}
		}
	})
	env := map[string]string{"SHOP_MYSQL": dsn, "SHOP_REDIS": "redis://" + redis, "SHOP_LAB": "true"}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	var starting sync.WaitGroup
	for i := range l.shops {
		starting.Go(func() {
			var err error
			l.shops[i], err = processes.Shop(t.Context(), rig.ShopOptions{Name: fmt.Sprint("shop-", i), Env: env})
			if err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return l
}

func (l *house) item(units int64) stock.Item {
	l.t.Helper()
	return stocktest.Item(l.t, l.store, units)
}

func (l *house) left(item stock.Item) int64 {
	l.t.Helper()
	return stocktest.Left(l.t, l.store, item.ID)
}

// buy orders one unit; the status is 0 when no answer came.
func buy(ctx context.Context, shop *rig.Shop, item stock.Item, labFault string) (status int) {
	if answer := post(ctx, shop, item, http.Header{}, labFault); answer != nil {
		return answer.StatusCode
	}
	return 0
}

// post orders one unit; the answer is nil when none came.
func post(ctx context.Context, shop *rig.Shop, item stock.Item, header http.Header, labFault string) *http.Response {
	return postBy(ctx, http.DefaultClient, shop, item, header, labFault)
}

func postBy(ctx context.Context, client *http.Client, shop *rig.Shop, item stock.Item, header http.Header, labFault string) *http.Response {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/api/v1/items/%d/orders", shop.URL, item.ID), strings.NewReader(`{"quantity":1}`))
	if err != nil {
		panic(err)
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	if labFault != "" {
		request.Header.Set(labmode.FaultHeader, labFault)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer
}

func TestShopsThatStartTogetherSellTogether(t *testing.T) {
	l := openShops(t, 3) // all three want to migrate the same empty database
	item := l.item(10)
	for i := range 12 {
		want := http.StatusCreated
		if i >= 10 {
			want = http.StatusConflict
		}
		if got := buy(t.Context(), l.shops[i%3], item, ""); got != want {
			t.Errorf("sale %d: %d, want %d", i, got, want)
		}
	}
}

func TestSIGTERMLetsSalesFinish(t *testing.T) {
	l := openShops(t, 1)
	item := l.item(10)
	answers := make(chan int, 4)
	for range cap(answers) {
		go func() { answers <- buy(t.Context(), l.shops[0], item, "read sleep 200ms") }()
	}
	waitForLock(t, l, item)
	if err := l.shops[0].Stop(); err != nil {
		t.Fatal(err)
	}
	sold := 0
	for range cap(answers) {
		// Those that had not reached the shop yet find it closed; nobody is left in doubt.
		if got := <-answers; got == http.StatusCreated {
			sold++
		}
	}
	if sold == 0 || l.left(item) != int64(10-sold) {
		t.Errorf("%d sales were answered with 201, %d units are left of 10", sold, l.left(item))
	}
	if log := l.shops[0].LogTail(); !strings.Contains(log, `"msg":"drained"`) {
		t.Errorf("the shop did not drain: %s", log)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	l := openShops(t, 1, "SHOP_DRAIN_TIMEOUT", "5m") // a drain would let the sale finish
	item := l.item(1)
	answer := make(chan int, 1)
	go func() { answer <- buy(t.Context(), l.shops[0], item, "read sleep 50s") }()
	waitForLock(t, l, item)
	pid := l.shops[0].PID()
	for waiting := true; waiting; {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		select {
		case <-l.shops[0].Exited():
			waiting = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	if got := <-answer; got != 0 || l.left(item) != 1 {
		t.Errorf("the sale was answered %d, %d units left", got, l.left(item))
	}
}

func TestFaultsAreInjectedIntoTheProcess(t *testing.T) {
	l := openShops(t, 2)
	item := l.item(10)
	began := time.Now()
	if got := buy(t.Context(), l.shops[0], item, "write stop 700ms"); got != http.StatusCreated || time.Since(began) < 700*time.Millisecond {
		t.Errorf("a sale that is stopped on the way: %d after %s, want 201 after 700ms", got, time.Since(began))
	}
	if got := buy(t.Context(), l.shops[0], item, "written kill"); got != 0 {
		t.Errorf("a sale whose shop is killed: %d, want no answer", got)
	}
	select {
	case <-l.shops[0].Exited():
	case <-time.After(30 * time.Second):
		t.Error("the shop survived its kill")
	}
	if left := l.left(item); left != 8 {
		t.Errorf("%d units left, want 8: the kill came after the commit", left)
	}
}

func waitForLock(t *testing.T, l *house, item stock.Item) {
	t.Helper()
	client, err := redisconn.Open("redis://" + l.redis)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testserver.Await(t, "somebody to take the lock", func() bool {
		return client.Do(t.Context(), "EXISTS", redislock.Keys("", sale.Key(item.ID)).Lock).Value == int64(1)
	})
}

// TestARepeatAfterAKill asks another shop what became of a sale whose shop died.
func TestARepeatAfterAKill(t *testing.T) {
	l := openShops(t, 3)
	item := l.item(10)
	for i, test := range []struct {
		point    string
		replayed bool
	}{
		{"written kill", true}, // it was committed
		{"write kill", false},  // it was not
	} {
		header := http.Header{"Idempotency-Key": {"key-of-some-customer-" + fmt.Sprint(i)}, labmode.StrategyHeader: {"conditional"}}
		if got := post(t.Context(), l.shops[i], item, header, test.point); got != nil {
			t.Fatalf("%s: %s, want no answer", test.point, got.Status)
		}
		got := post(t.Context(), l.shops[2], item, header, "")
		if got == nil || got.StatusCode != http.StatusCreated || (got.Header.Get("Idempotency-Replayed") == "true") != test.replayed {
			t.Errorf("%s: the repeat was answered %+v, want 201, replayed %t", test.point, got, test.replayed)
		}
		if left := l.left(item); left != int64(9-i) {
			t.Errorf("%s: %d units left, want %d", test.point, left, 9-i)
		}
	}
}

// command runs the shop's program to its end.
func command(t *testing.T, env []string, args ...string) (code int, stderr string) {
	t.Helper()
	program, err := processes.ShopBinary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runProgram(t, program, env, args...)
}

func runProgram(t *testing.T, program string, env []string, args ...string) (code int, stderr string) {
	t.Helper()
	var said strings.Builder
	run := exec.CommandContext(t.Context(), program, args...)
	run.Env, run.Stderr = append(os.Environ(), env...), &said
	if err := run.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatal(err)
		}
	}
	return run.ProcessState.ExitCode(), said.String()
}
