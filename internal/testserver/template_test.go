package testserver_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/testserver"
)

// emptyCache gives the test, and the processes that it starts, a folder of caches of its own.
func emptyCache(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home) // which is where some systems have it
	t.Setenv("XDG_CACHE_HOME", home)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "stocklock")
}

// cached lists what is in the cache but its lock.
func cached(t *testing.T, cache string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

// TestServersComeFromOneTemplate starts three servers at once without a template, each in a group of
// its own, and one more that finds what a process that was killed has left.
func TestServersComeFromOneTemplate(t *testing.T) {
	testserver.NeedsServers(t)
	cache := emptyCache(t)
	var starting errgroup.Group
	for range 3 {
		g := testserver.Start(t)
		starting.Go(func() error {
			server, err := g.MySQL(t.Context())
			if err != nil {
				return err
			}
			_, err = server.CreateDatabase(t.Context(), "ours") // fails where two servers share their data
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		t.Fatal(err)
	}
	first := cached(t, cache)
	if len(first) != 1 {
		t.Fatalf("templates = %v, want one for all servers", first)
	}

	version := first[0][:len(first[0])-1] + "x" // the same program's, before it was updated
	for _, broken := range []string{"incomplete-1234", version} {
		if err := os.Rename(filepath.Join(cache, first[0]), filepath.Join(cache, broken)); err != nil {
			t.Fatal(err)
		}
		if _, err := testserver.Start(t).MySQL(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again := cached(t, cache); !slices.Equal(again, first) {
			t.Errorf("templates beside %s = %v, want %v alone", broken, again, first)
		}
	}
}

// TestNoCacheIsNoHarm: a server starts where no template can be kept, and where the one that is there
// cannot be copied.
func TestNoCacheIsNoHarm(t *testing.T) {
	testserver.NeedsServers(t)
	for name, spoil := range map[string]func(cache string) error{
		"no folder": func(cache string) error { return os.WriteFile(cache, nil, 0o600) },
		"no copy": func(cache string) error {
			if _, err := testserver.Start(t).MySQL(t.Context()); err != nil {
				return err
			}
			return os.Symlink(cache, filepath.Join(cache, cached(t, cache)[0], "link"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cache := emptyCache(t)
			if err := os.MkdirAll(filepath.Dir(cache), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := spoil(cache); err != nil {
				t.Fatal(err)
			}
			server, err := testserver.Start(t).MySQL(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("mysql", server.DSN())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.PingContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
