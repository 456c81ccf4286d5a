//go:build explore

package explore

import (
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/stage/stagetest"
)

// TestExplorationFindsDefects builds a shop with one defect at a time. Nothing tells the
// exploration where it is.
func TestExplorationFindsDefects(t *testing.T) {
	const root = "../../.."
	for _, tt := range []struct {
		what, file, old, new string
		search               Survey
		want                 schedule.Cause
	}{
		{
			"the fence is raised at the write, and not before the read", "internal/strategy/fenced.go",
			`	if err := store.RaiseFence(ctx, sale.ItemID, sale.Token); err != nil {
		return stock.Order{}, err
	}
	return readThen(ctx, store, sale, store.WriteFenced)`,
			`	return readThen(ctx, store, sale, func(ctx context.Context, sale stock.Sale, read stock.Item) (stock.Order, error) {
		if err := store.RaiseFence(ctx, sale.ItemID, sale.Token); err != nil {
			return stock.Order{}, err
		}
		return store.WriteFenced(ctx, sale, read)
	})`,
			Survey{Strategy: "fenced", Events: []schedule.Event{schedule.Pause}, Customers: 2}, schedule.LateWrite,
		},
		{
			"a release deletes whoever's lock it is", "internal/strategy/ladder/compare_and_delete.lua",
			`if redis.call('GET', KEYS[1]) == ARGV[1] then`, `if true then`,
			Survey{Strategy: "owner-checked", Events: []schedule.Event{schedule.Wait}, Customers: 3, Switches: 4}, schedule.ForeignDelete,
		},
		{
			"SETNX and PEXPIRE in place of SET NX PX", "internal/strategy/ladder/set_ex_nx.go",
			`			ok, err := d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}`,
			`			ok, err := d.Redis.SetNX(ctx, key, 1, 0).Result()
			if err != nil || !ok {
				return nil, err
			}
			if err := d.Redis.PExpire(ctx, key, d.Lease).Err(); err != nil {
				return nil, err
			}`,
			Survey{Strategy: "set-ex-nx", Events: []schedule.Event{schedule.Kill}, Customers: 2}, schedule.NoExpiry,
		},
	} {
		t.Run(tt.what, func(t *testing.T) {
			program := overlaytest.Shop(t, root, map[string]string{tt.file: overlaytest.Changed(t, root, tt.file, tt.old, tt.new)})
			s := stagetest.Open(t, program, stage.Options{Lease: 400 * time.Millisecond})
			err := tt.search.Run(t.Context(), s, func(Result, int, int) {}, func(r Result) {
				t.Logf("%s, %s: %d runs, %d bad, %v, surprises %v", r.Strategy, r.Name(), r.Found.Runs, r.Found.Bad, r.Found.Causes(), r.Surprises)
				if !slices.Contains(r.Found.Causes(), tt.want) || len(r.Surprises) == 0 {
					t.Errorf("causes %v, surprises %v, want %s, as a surprise", r.Found.Causes(), r.Surprises, tt.want)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
