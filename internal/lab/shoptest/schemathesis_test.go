//go:build contract

package shoptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// TestSchemathesisFindsNothing holds the production shop to its contract, with requests that
// schemathesis makes from the contract. Its path is in SCHEMATHESIS: see scripts/contract/run.sh.
func TestSchemathesisFindsNothing(t *testing.T) {
	program := os.Getenv("SCHEMATHESIS")
	if program == "" {
		t.Fatal("SCHEMATHESIS is not set: run make contract")
	}
	shop := startProduction(t)
	for n := range 3 {
		createItem(t, shop, n)
	}
	config, err := filepath.Abs(filepath.Join(root, "scripts/contract/schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"public": shop.URL, "staff": shop.Staff} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--config-file=" + config, "run", url + "/openapi.yaml", "--checks=all", "--seed=1", "--no-color"}
			schemathesis := exec.CommandContext(t.Context(), program, append(args, strings.Fields(os.Getenv("ARGS"))...)...)
			schemathesis.Dir = t.TempDir()
			schemathesis.Stdout, schemathesis.Stderr = t.Output(), t.Output()
			if err := schemathesis.Run(); err != nil {
				t.Errorf("schemathesis: %v; the shop's log: %s", err, shop.LogTail())
			}
		})
	}
}

// startProduction starts the shop as it is deployed, with the changes of items switched on.
func startProduction(t *testing.T) *rig.Shop {
	t.Helper()
	started, err := rig.New(buildProduction(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() })
	shop, err := started.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: map[string]string{
		"SHOP_MYSQL": testserver.Database(t), "SHOP_REDIS": "redis://" + testserver.RedisAddr(t), "SHOP_STAFF_SUBJECT_HEADER": "X-Subject", "SHOP_SUBJECT_HEADER": "X-Subject",
		"SHOP_LIMIT": "10000", "SHOP_RESERVATIONS": "true", "SHOP_OPEN_RESERVATIONS": "100", "SHOP_STRATEGY": "conditional",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return shop
}
