package seen_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/lab/seen"
	"stocklock/internal/testserver"
)

// TestKeys: those that there are, in their order, with what they hold and how long they last.
func TestKeys(t *testing.T) {
	server, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	redis := server.Client
	for _, command := range [][]any{
		{"SET", "plain", "owner", "PX", 60_000}, {"SET", "counter", 7}, {"SET", "binary", "\xff\x00"}, {"HSET", "hash", "b", 2, "a", 1},
	} {
		if err := redis.Do(t.Context(), command...).Err; err != nil {
			t.Fatal(err)
		}
	}
	found, err := seen.Keys(t.Context(), redis, "hash", "none", "plain", "counter", "binary")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, text string
		ends       bool
	}{{"hash", "a 1, b 2", false}, {"plain", "owner", true}, {"counter", "7", false}, {"binary", "ff00", false}}
	if len(found) != len(want) {
		t.Fatalf("found %+v, want %+v", found, want)
	}
	for i, k := range found {
		w := want[i]
		if k.Name != w.name || k.Text != w.text || k.Dump == "" || k.Left() >= 0 != w.ends || k.Left() > time.Minute || time.Since(k.Now).Abs() > time.Minute {
			t.Errorf("found %+v, which lasts %s, want %+v", k, k.Left(), w)
		}
	}
	if err := redis.Do(t.Context(), "SET", "counter", 8).Err; err != nil {
		t.Fatal(err)
	}
	if now, err := seen.Keys(t.Context(), redis, "counter"); err != nil || len(now) != 1 || now[0].Dump == found[2].Dump {
		t.Errorf("a key that holds something else is the same: %+v, %v", now, err)
	}
}

// TestSilenceThatNobodyHasSeen does not count: the machine may not have run who is silent either.
func TestSilenceThatNobodyHasSeen(t *testing.T) {
	const every = 3 * time.Millisecond
	var q seen.Quiet
	heard := time.Now()
	q.Until(heard, heard.Add(every), every)
	if got := q.Until(heard, heard.Add(time.Second), every); got != 3*every {
		t.Errorf("a look after %s and the next one after a second have seen %s", every, got)
	}
	if got := q.Until(heard.Add(time.Second), heard.Add(time.Second), every); got != 0 {
		t.Errorf("who has just been heard is silent for %s", got)
	}
}

// TestALookWaitsForNewer than what MariaDB keeps of the look before, also where that has failed.
func TestALookWaitsForNewer(t *testing.T) {
	for _, first := range []error{nil, errors.New("interrupted")} {
		synctest.Test(t, func(t *testing.T) {
			var asked []time.Time
			waits := seen.NewMySQL(nil, true).At(func(context.Context, func(*sql.DB) error) error {
				asked = append(asked, time.Now())
				return first
			})
			for range 2 {
				if _, err := waits.Look(t.Context()); !errors.Is(err, first) {
					t.Fatal(err)
				}
			}
			if idle := asked[1].Sub(asked[0]); idle <= 100*time.Millisecond {
				t.Errorf("after %v, its tables were read again after %s, and are filled anew after 100ms", first, idle)
			}
		})
	}
}

// TestUntil asks at once, ends with an error, and with its context.
func TestUntil(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	wrong := errors.New("wrong")
	for _, tt := range []struct {
		so    bool
		fails error
		want  bool
	}{{so: true, want: true}, {fails: wrong}, {}} {
		got, err := seen.Until(ended, time.Hour, func() (bool, error) { return tt.so, tt.fails })
		if got != tt.want || err != tt.fails {
			t.Errorf("%+v: %t, %v", tt, got, err)
		}
	}
	asked := 0
	if so, err := seen.Until(t.Context(), time.Nanosecond, func() (bool, error) { asked++; return asked == 3, nil }); !so || err != nil || asked != 3 {
		t.Errorf("asked %d times: %t, %v", asked, so, err)
	}
}
