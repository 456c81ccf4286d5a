package shoptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockWithChangesTheTextAlone also under the bash of macOS, which keeps quotes within the replacement of a pattern.
func TestLockWithChangesTheTextAlone(t *testing.T) {
	old := []string{"-O", "compat42"}
	if exec.Command("bash", append(old, "-c", "true")...).Run() != nil {
		old = nil // it is older
	}
	changed := `cat "$(dirname "${GOFLAGS##*-overlay=}")/acquire_free.lua"`
	lockWith := exec.Command("bash", append(old, "scripts/lock-with.sh", "acquire_free.lua", "there == 0", "false", "bash", "-c", changed)...)
	lockWith.Dir = "../../.."
	out, err := lockWith.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "if false then") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestTheFailoverCountsOnMacOS has the script count beside the wc and the date of BSD. Nothing is killed: what it asks is played.
func TestTheFailoverCountsOnMacOS(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil || testing.Short() {
		t.Skip("it takes seconds, and perl: ", err)
	}
	dir := t.TempDir()
	t.Setenv("DIR", dir)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, script := range map[string]string{
		"wc":   `printf '%8d\n' "$(REAL "$@")"`,
		"date": `case $1 in +%N) echo N ;; *) echo "$(REAL +%s)N" ;; esac`,
		"curl": `for word; do case $word in X-Request-Id:*) echo "${word#*: }" >>"$DIR/sold" ;; esac; done; printf 201`,
		"docker": `case $* in
*"INSERT INTO items"*) echo 7 ;;
*"port haproxy"*) echo 127.0.0.1:1 ;;
*galera-2*PROCESSLIST*) echo 8 ;;
*PROCESSLIST*) echo 0 ;;
*get-master-addr*) echo 10.0.0.2 ;;
*redis-2*hostname*) echo 10.0.0.2 ;;
*hostname*) echo 10.0.0.1 ;;
*"SELECT request_id"*) cat "$DIR/sold" ;;
*"UPDATE items"*) touch "$DIR/withdrawn" ;;
*"SELECT stock"*) echo $((100000 - $(wc -l <"$DIR/sold"))) ;;
esac`,
	} {
		real, _ := exec.LookPath(name)
		script = "#!/usr/bin/env bash\n" + strings.ReplaceAll(script, "REAL", real) + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(dir, "galera.env")
	if err := os.WriteFile(secrets, []byte("SHOP_SUBJECT_HEADER=X-Subject\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failover := exec.Command("deploy/galera/failover.sh", secrets)
	failover.Dir = "../../.."
	out, err := failover.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "galera-2 killed") || !strings.Contains(string(out), "redis-2 killed") {
		t.Errorf("%v:\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "withdrawn")); err != nil {
		t.Error("its item stays on sale")
	}
}

// TestOnlyAnExplicitFirstStartMakesACluster: an empty node would otherwise replace the data of those that have some.
func TestOnlyAnExplicitFirstStartMakesACluster(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/galera/node.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, node, first, has, state string
		answers, makes                bool
	}{
		{name: "the first start", node: "galera-1", first: "yes", makes: true},
		{name: "the first start, of another node", node: "galera-2", first: "yes"},
		{name: "the first start, after one that failed", node: "galera-1", first: "yes", has: "mysql", makes: true},
		{name: "the first start, where others have data", node: "galera-1", first: "yes", answers: true},
		{name: "a lost disk, and no other node yet", node: "galera-1"},
		{name: "a lost disk, and a try to join that failed", node: "galera-1", has: "mysql", state: "safe_to_bootstrap: 1"},
		{name: "the last that ended", node: "galera-3", has: "stocklock", state: "safe_to_bootstrap: 1", makes: true},
		{name: "one that ended before", node: "galera-1", first: "yes", has: "stocklock", state: "safe_to_bootstrap: 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			data, answer := filepath.Join(dir, "data"), "exit 1"
			if c.answers {
				answer = "exit 0"
			}
			script := strings.NewReplacer("/var/lib/mysql", data, "/tmp/accounts.sql", filepath.Join(dir, "accounts.sql")).Replace(string(text))
			for name, script := range map[string]string{
				"node.sh": script, "is-synced.sh": "#!/bin/sh\n" + answer, "mariadbd": "#!/bin/sh\necho \"$@\"",
				"mariadb-install-db": "#!/bin/sh\nmkdir " + data + "/mysql",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, database := range []string{"", "mysql", c.has} {
				if database == "mysql" && c.has == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Join(data, database), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(data, "grastate.dat"), []byte(c.state), 0o600); err != nil {
				t.Fatal(err)
			}
			node := exec.Command(filepath.Join(dir, "node.sh"))
			node.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "NODE="+c.node, "NEW_CLUSTER="+c.first,
				"MYSQL_MIGRATE_PASSWORD=a", "MYSQL_SHOP_PASSWORD=b")
			out, err := node.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--wsrep-node-name="+c.node) || strings.Contains(string(out), "--wsrep-new-cluster") != c.makes {
				t.Errorf("it makes a cluster: want %t: %v:\n%s", c.makes, err, out)
			}
		})
	}
}
