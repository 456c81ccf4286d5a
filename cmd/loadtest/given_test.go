package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestGivenShopsAreExplained gives two shops by address, with their traces. A cell that breaks is
// explained from the traces and from what Redis announces, as one of the lab's own shops would be.
// The settings of the given Redis stay as they were.
func TestGivenShopsAreExplained(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	r, err := rig.New("")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mysql, err := r.MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := stocktest.OpenAt(t, mysql.DSN())
	stocktest.Migrate(t, store)
	redis, err := r.Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const setting = "notify-keyspace-events"
	if err := redis.Client.Do(t.Context(), "CONFIG", "SET", setting, "KA").Err; err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	result := filepath.Join(dir, "result.json")
	args := []string{"run", "none:contention", "set-ex-nx:overrun", "redlock:contention", "none:failover,partition", "--out", result, "--draw",
		"--lease", "500ms", "--wait", "375ms", "--mysql", mysql.DSN(), "--redis", redis.URL()}
	for _, name := range []string{"a", "b"} {
		trace := filepath.Join(dir, name)
		shop, err := r.Shop(t.Context(), rig.ShopOptions{Name: name, Env: map[string]string{
			"SHOP_MYSQL": mysql.DSN(), "SHOP_REDIS": redis.URL(), "SHOP_LAB": "true", "SHOP_LEASE": "500ms", "SHOP_WAIT": "375ms",
			"SHOP_RETRY": "2ms", "SHOP_LAB_WORK": "10ms", "SHOP_TRACE": trace, "SHOP_LOG_LEVEL": "error",
		}})
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--shop", shop.URL+"="+trace)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	if got := redis.Client.Do(t.Context(), "CONFIG", "GET", setting); got.Err != nil || strings.Contains(fmt.Sprint(got.Value), "$") {
		t.Errorf("%s is %v now: want it left alone", setting, got)
	}
	for _, want := range []string{"skipped failover, partition: ", "skipped overrun: ", "skipped redlock: ", "none:contention: oversold", "Would have held: "} {
		if strings.Count(out.String(), want) == 0 {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	saved, err := report.Read(result)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range saved.Cells {
		switch {
		case c.Strategy == "redlock" && c.Unfit != trial.UnfitStrategy, c.Scenario != "contention" && c.Unfit != trial.UnfitScenario:
			t.Errorf("%s is skipped for its %q", c.Name(), c.Unfit)
		case c.Verdict == verdict.Oversold && (c.Explanation == nil || c.Explanation.Cause != verdict.NoLock):
			t.Errorf("%s is explained by %+v, want %s", c.Name(), c.Explanation, verdict.NoLock)
		}
	}
	var explained bytes.Buffer
	if code := run(t.Context(), []string{"run", "none:contention", "--draw", "--from", result}, &explained, &errs); code != exitExpected ||
		!strings.Contains(explained.String(), "oversold") {
		t.Errorf("explained from the saved result with exit code %d:\n%s", code, explained.String())
	}
}
