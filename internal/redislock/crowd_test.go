package redislock

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// crowdEnv makes the test binary a process with so many goroutines that all want one lock, once.
const crowdEnv = "REDISLOCK_TEST_CROWD"

const crowdKey = "crowd"

// joinCrowd says a line for each goroutine that had the lock: its token, and how long it waited.
func joinCrowd(addr string, goroutines int) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	l := New(client, Options{Lease: time.Minute})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			begun := time.Now()
			_, lease, err := l.Acquire(context.Background(), crowdKey)
			if err != nil {
				fmt.Println("failed:", err)
				return
			}
			fmt.Println(lease.Token(), time.Since(begun).Milliseconds())
			if err := lease.Release(); err != nil {
				fmt.Println("failed:", err)
			}
		})
	}
	for { // all goroutines are in the queue
		l.mu.Lock()
		n := l.locks[tagged(crowdKey)]
		there := n != nil && n.waiters.Len() == goroutines
		l.mu.Unlock()
		if there {
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	all.Wait()
	l.Close(context.Background())
	client.Close()
	os.Exit(0)
}

// TestCrowd has a thousand goroutines in ten processes wait for one lock. Everybody gets it, and
// what a hand-off asks of Redis does not grow with those who wait.
func TestCrowd(t *testing.T) {
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	few := crowd(t, server.addr, 10, 10)
	many := crowd(t, server.addr, 10, 100)
	if many > few+0.05 {
		t.Errorf("%.2f requests a hold with 1,000 waiters, %.2f with 100: want no more", many, few)
	}
}

// crowd returns the requests to Redis for each hold.
func crowd(t *testing.T, addr string, processes, goroutines int) float64 {
	t.Helper()
	client, _ := newClient(t, addr)
	holder, _ := newLockerAt(t, addr, Options{Lease: time.Minute})
	_, lease := acquire(t, holder, t.Context(), crowdKey)
	var all sync.WaitGroup
	var mu sync.Mutex
	tokens := map[int64]bool{}
	longest, last := 0, time.Time{}
	ready := make(chan bool, processes)
	for range processes {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), workerEnv+"="+addr, crowdEnv+"="+strconv.Itoa(goroutines))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer cmd.Wait()
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if lines.Text() == "ready" {
					ready <- true
					continue
				}
				first, second, _ := strings.Cut(lines.Text(), " ")
				token, err := strconv.ParseInt(first, 10, 64)
				waited, _ := strconv.Atoi(second)
				if err != nil {
					t.Errorf("a worker says %q", lines.Text())
				}
				mu.Lock()
				if tokens[token] {
					t.Errorf("token %d was given twice", token)
				}
				tokens[token] = true
				longest, last = max(longest, waited), time.Now()
				mu.Unlock()
			}
		})
	}
	for range processes {
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Fatal("a process is not ready after a minute")
		}
	}
	for client.ZCard(t.Context(), Keys("", crowdKey).Queue).Val() < int64(processes) {
		time.Sleep(time.Millisecond)
	}
	requests := func() int { return commandCalls(t, client, "evalsha") + commandCalls(t, client, "eval") }
	before, begun := requests(), time.Now()
	release(t, lease)
	all.Wait()
	took, holds := last.Sub(begun), processes*goroutines
	perHold := float64(requests()-before) / float64(holds)
	t.Logf("%d processes with %d goroutines each: everybody had the lock within %s; %.3f requests a hold, %s a hand-off; the longest wait was %s",
		processes, goroutines, took.Round(time.Millisecond), perHold, (took / time.Duration(holds)).Round(time.Microsecond), time.Duration(longest)*time.Millisecond)
	if len(tokens) != holds {
		t.Errorf("%d of %d had the lock", len(tokens), holds)
	}
	return perHold
}
