package program

import (
	"strings"
	"testing"

	"stocklock/internal/testserver"
)

func TestAShopThatMayNotMigrateWaitsForTheSchema(t *testing.T) {
	t.Setenv("SHOP_MYSQL", testserver.Database(t))
	t.Setenv("SHOP_REDIS", "redis://"+testserver.RedisAddr(t))
	code, _, stderr := command(t.Context(), "--addr=127.0.0.1:0", "--no-migrate", "--startup-timeout=1s")
	if code != 1 || !strings.Contains(stderr, "the schema is at version 0, this program needs") {
		t.Errorf("exit code %d, said %s", code, stderr)
	}
}

func TestMigrateStatus(t *testing.T) {
	t.Setenv("SHOP_MYSQL", testserver.Database(t))
	if code, stdout, _ := command(t.Context(), "migrate", "status"); code != 1 || !strings.Contains(stdout, "the schema is at version 0, this program needs") {
		t.Errorf("of an empty database: exit code %d, %s", code, stdout)
	}
	for _, up := range [][]string{{"migrate"}, {"migrate", "up"}} { // the second time there is nothing to do
		if code, _, stderr := command(t.Context(), up...); code != 0 || !strings.Contains(stderr, "the schema is up to date") {
			t.Errorf("%s: exit code %d, %s", up, code, stderr)
		}
	}
	if code, stdout, stderr := command(t.Context(), "migrate", "status"); code != 0 || stderr != "" {
		t.Errorf("of a new schema: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := command(t.Context(), "erase", "ann"); code != 0 || stdout != "erased the customer from 0 orders\n" {
		t.Errorf("erase: exit code %d, %s%s", code, stdout, stderr)
	}
}

func TestMigrateGivesUp(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	if code, _, stderr := command(t.Context(), "migrate", "--startup-timeout=1s"); code != 1 ||
		!strings.Contains(stderr, "shop: mysql at 127.0.0.1:1: gave up after 1s") || strings.Contains(stderr, "geheim") {
		t.Errorf("exit code %d, said %s", code, stderr)
	}
	t.Setenv("SHOP_MYSQL", "")
	if code, _, stderr := command(t.Context(), "migrate"); code != 2 {
		t.Errorf("without SHOP_MYSQL: exit code %d, said %s", code, stderr)
	}
}
