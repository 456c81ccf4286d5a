package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/bench/lock"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/declared/declaredtest"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

// settingsFor starts an etcd. Without one the test fails, and says how to install it.
func settingsFor(t *testing.T) *Settings {
	t.Helper()
	server, err := testserver.Start(t).Etcd(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Settings{Etcd: []string{server.Addr}}
}

// TestEveryPeerIsAStrategy holds the peers to what every strategy must pass. Its quorum is one
// server, and two keys of three want three: see TestTwoKeysOfThree.
func TestEveryPeerIsAStrategy(t *testing.T) {
	var subjects []strategytest.Subject
	var all []declared.Strategy
	for _, s := range Strategies(settingsFor(t)) {
		all = append(all, s.Describe())
		if s.Name != rueidisTwo.Name {
			subjects = append(subjects, declaredtest.Subject(s.Strategy, s.Describe()))
		}
	}
	declaredtest.Consistent(t, all)
	strategytest.All(t, subjects)
}

// TestNotesAreOnWhatBreaks: each cell that is expected to break has a note, and no other has.
func TestNotesAreOnWhatBreaks(t *testing.T) {
	for _, p := range All(&Settings{}) {
		for _, sc := range scenario.Of(trial.OneServer) {
			breaks := sc.Expected(p.Describe()).Verdict != verdict.Held && sc.Expected(p.Describe()).Verdict != verdict.Inapplicable
			note, noted := p.Notes[sc.Name]
			if breaks != noted {
				t.Errorf("%s under %s: expected to break: %t, with a note: %t", p.Name, sc.Name, breaks, noted)
			}
			if noted && (note.Says == "" || !strings.Contains(note.Where, "](http") || note.Mend == "") {
				t.Errorf("%s under %s: the note is incomplete: %+v", p.Name, sc.Name, note)
			}
		}
		for name := range p.Declared.Inapplicable {
			if _, err := scenario.ByName(name); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
}

// TestOurNotesAreInOurDocumentation: what is quoted of this repository's lock stands there.
func TestOurNotesAreInOurDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	guarantees := strings.Join(strings.Fields(string(text)), " ")
	for _, own := range ours() {
		for name, note := range own.Notes {
			if _, err := scenario.ByName(name); err != nil {
				t.Errorf("%s: %v", own.Name, err)
			}
			if !strings.Contains(guarantees, note.Says) || note.Mend == "" {
				t.Errorf("%s under %s: %q is not in docs/guarantees.md, or nothing mends it: %q", own.Name, name, note.Says, note.Mend)
			}
		}
	}
}

// TestTwoKeysOfThree: rueidislock-two-of-three puts each key on a server of its own, and still excludes
// others when one server has lost its key.
func TestTwoKeysOfThree(t *testing.T) {
	servers := threeServers(t)
	options := strategy.Options{Lease: 5 * time.Second, Wait: time.Second}
	g := guardOf(lock.RueidisTwo, strategy.Deps{Options: options, Locks: strategy.Locks{Quorum: servers}}, lock.Config{})
	defer g.Close(t.Context())
	// The third key is taken in the background, and is not where its server was slow: two hold the lock.
	for n, whole := 1, false; !whole; n++ {
		if n > 20 {
			t.Fatal("no holder had a key on each server")
		}
		key := fmt.Sprint("stock:", n)
		err := g.Do(t.Context(), key, func(ctx context.Context, _ int64) error {
			for until := time.Now().Add(time.Second); !whole && time.Now().Before(until); time.Sleep(time.Millisecond) {
				whole = true
				for i, name := range lock.RueidisKeys(3) {
					keys, err := servers[i].Keys(ctx, "*"+key).Result()
					if want := strings.ReplaceAll(name, "%s", key); err != nil || len(keys) > 1 || len(keys) == 1 && keys[0] != want {
						t.Fatalf("server %d has %v, %v, want %s", i, keys, err, want)
					}
					whole = whole && len(keys) == 1
				}
			}
			if !whole {
				return nil
			}
			if err := servers[0].FlushAll(ctx).Err(); err != nil {
				return err
			}
			if err := g.Do(t.Context(), key, func(context.Context, int64) error { return nil }); err != strategy.ErrBusy {
				t.Errorf("a second holder: %v, want %v", err, strategy.ErrBusy)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestARefusalOfTwoOfThree: whoever finds the lock taken is refused at its first try, and one that finds
// only the third key taken is not refused.
func TestARefusalOfTwoOfThree(t *testing.T) {
	servers := threeServers(t)
	locker, err := lock.RueidisTwo.Open(lock.Config{Redis: servers, Lease: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	ask := func(of string) (held lock.Hold, refused chan struct{}, err error) {
		refused = make(chan struct{})
		waiting, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, errors.New("no refusal was seen"))
		defer cancel()
		ctx := lock.WithRefusal(t.Context(), func() { close(refused); cancel() })
		held, err = locker.Lock(ctx, waiting, of)
		return held, refused, err
	}
	third := strings.ReplaceAll(lock.RueidisKeys(3)[2], "%s", "stock:1")
	if err := servers[2].Set(t.Context(), third, "another's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	first, refused, err := ask("stock:1")
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := ask("stock:1")
	if !errors.Is(err, lock.ErrTaken) {
		t.Errorf("a second holder: %v, want %v", err, lock.ErrTaken)
	}
	select {
	case <-second:
	default:
		t.Errorf("the second holder was not refused at its first try: %v", err)
	}
	for !strings.Contains(servers[2].Info(t.Context(), "commandstats").Val(), "cmdstat_eval:") && t.Context().Err() == nil {
		time.Sleep(time.Millisecond) // the third key is asked for in the background
	}
	if err := first.Release(t.Context()); err != nil { // waits for the end of that
		t.Error(err)
	}
	select {
	case <-refused:
		t.Error("the holder was refused, who found only the third key taken")
	default:
	}
}

func threeServers(t *testing.T) (servers []redis.UniversalClient) {
	t.Helper()
	group := testserver.Start(t)
	for range 3 {
		server, err := group.Redis(t.Context(), testserver.RedisOptions{})
		if err != nil {
			t.Fatal(err)
		}
		client := lock.NewClient(server.Addr, 1)
		t.Cleanup(func() { client.Close() })
		servers = append(servers, client)
	}
	return servers
}

// TestRevisionsGrow: the tokens of etcd's lock grow with each holder, which a fence needs.
func TestRevisionsGrow(t *testing.T) {
	g := etcdGuard(strategy.Deps{Options: strategy.Options{Lease: time.Second, Wait: 5 * time.Second}}, settingsFor(t).Etcd)
	defer g.Close(t.Context())
	var last int64
	for range 5 {
		err := g.Do(t.Context(), "stock:1", func(_ context.Context, token int64) error {
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEtcdWithoutAnAddress says which setting is missing.
func TestEtcdWithoutAnAddress(t *testing.T) {
	g := etcdGuard(strategy.Deps{}, nil)
	err := g.Do(t.Context(), "stock:1", func(context.Context, int64) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "SHOP_ETCD") {
		t.Errorf("%v, want the setting SHOP_ETCD", err)
	}
}
