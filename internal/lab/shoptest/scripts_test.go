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
}
