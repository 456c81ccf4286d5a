package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/flags"
)

const (
	goodMySQL = "shop:geheim@tcp(127.0.0.1:1)/stocklock"
	goodRedis = "redis://:geheim@127.0.0.1:1"
)

func TestWhatCannotBeIsOneLineAndExitCode2(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		args []string
		says string
	}{
		{"no MySQL", map[string]string{"SHOP_MYSQL": ""}, nil, "SHOP_MYSQL is not set"},
		{"a DSN that is none", map[string]string{"SHOP_MYSQL": "shop:geheim@db"}, nil, "want user:password@tcp(host:3306)/database"},
		{"a DSN that is a URL", map[string]string{"SHOP_MYSQL": "mysql://shop:geheim@db/stocklock"}, nil, "want user:password@tcp(host:3306)/database"},
		{"a DSN without a database", map[string]string{"SHOP_MYSQL": "shop:geheim@tcp(db)/"}, nil, "names no database"},
		{"a Redis URL that is none", map[string]string{"SHOP_REDIS": "redis://:geheim@%zz"}, nil, "SHOP_REDIS"},
		{"a Redis URL whose host was forgotten", map[string]string{"SHOP_REDIS": "redis://shop:geheim"}, nil, "SHOP_REDIS"},
		{"a DSN whose host was forgotten", map[string]string{"SHOP_MYSQL": "shop:geheim/stocklock"}, nil, "SHOP_MYSQL"},
		{"a Redis URL of another kind", map[string]string{"SHOP_REDIS": "http://:geheim@x"}, nil, "want redis://"},
		{"a Redis database that is none", map[string]string{"SHOP_REDIS": "redis://:geheim@x/y"}, nil, "SHOP_REDIS"},
		{"a secret that is not there", map[string]string{"SHOP_MYSQL_FILE": "/nowhere"}, nil, "--mysql-file (SHOP_MYSQL_FILE) cannot be read"},
		{"an unknown strategy", nil, []string{"--strategy=hope"}, `no strategy "hope": want one of `},
		{"a lease of 0", map[string]string{"SHOP_LEASE": "0s"}, nil, "--lease (SHOP_LEASE) is 0s: want 50ms to 1m"},
		{"a lease below 0", nil, []string{"--lease", "-1s"}, "--lease (SHOP_LEASE) is -1s: want 50ms to 1m"},
		{"a lease of weeks", nil, []string{"--lease=1000h"}, "--lease (SHOP_LEASE) is 1000h0m0s: want 50ms to 1m"},
		{"a wait below 0", nil, []string{"--wait=-1s"}, "--wait (SHOP_WAIT) is -1s: want 1ms to 1m"},
		{"a wait of 0", nil, []string{"--wait=0"}, "--wait (SHOP_WAIT) is 0s: want 1ms to 1m"},
		{"a drain below 0", nil, []string{"--drain-timeout", "-1s"}, "--drain-timeout (SHOP_DRAIN_TIMEOUT) is -1s: want 0s to 10m"},
		{"a lease that is no duration", map[string]string{"SHOP_LEASE": "10"}, nil, "--lease"},
		{"no connections to MySQL", map[string]string{"SHOP_MYSQL_POOL": "0"}, nil, "--mysql-pool (SHOP_MYSQL_POOL) is 0: want 1 to 1000"},
		{"too many connections to Redis", nil, []string{"--redis-pool=10001"}, "--redis-pool (SHOP_REDIS_POOL) is 10001: want 1 to 10000"},
		{"no slots", map[string]string{"SHOP_MAX_IN_FLIGHT": "0"}, nil, "--max-in-flight (SHOP_MAX_IN_FLIGHT) is 0: want 1 or more"},
		{"fewer than no slots", nil, []string{"--max-in-flight", "-1"}, "--max-in-flight (SHOP_MAX_IN_FLIGHT) is -1: want 1 or more"},
		{"an address without a port", nil, []string{"--addr=localhost"}, `--addr (SHOP_ADDR) is "localhost": want host:port with a port up to 65535, such as 127.0.0.1:8080`},
		{"a port that is none", nil, []string{"--addr=:99999"}, `--addr (SHOP_ADDR) is ":99999": want host:port`},
		{"an inner port that is none", nil, []string{"--addr=:0", "--internal-addr=:x"}, `--internal-addr (SHOP_INTERNAL_ADDR) is ":x": want host:port`},
		{"a shop to ask at a port that is none", nil, []string{"healthcheck", "--addr=:99999"}, `--addr (SHOP_ADDR) is ":99999": want host:port`},
		{"staff without a name for the audit", nil, []string{"--staff-addr=127.0.0.1:0"}, "--staff-addr (SHOP_STAFF_ADDR) needs --staff-subject-header"},
		{"staff on the internal listener, as it was", map[string]string{"SHOP_STAFF": "true"}, nil, "a listener of its own, --staff-addr (SHOP_STAFF_ADDR)"},
		{"staff at a port that is none", nil, []string{"--staff-addr=:x"}, `--staff-addr (SHOP_STAFF_ADDR) is ":x": want host:port`},
		{"staff beside absolute writes", nil, []string{"--staff-addr=127.0.0.1:0", "--staff-subject-header=X-Staff", "--strategy=fenced"},
			"fenced writes over what was restocked"},
		{"customers who cancel, and have no names", nil, []string{"--cancel-within=1h"}, "--cancel-within (SHOP_CANCEL_WITHIN) needs --subject-header"},
		{"customers who cancel beside absolute writes", nil, []string{"--cancel-within=1h", "--subject-header=X-Subject", "--strategy=fenced"},
			"fenced writes over what was restocked"},
		{"nobody to erase", nil, []string{"erase"}, "subject"},
		{"a name too long", map[string]string{"SHOP_NAME": strings.Repeat("x", 65)}, nil, `shop: --name (SHOP_NAME): the name "xxx`},
		{"an unknown flag", nil, []string{"--hope"}, "unknown flag --hope"},
		{"an unknown command", nil, []string{"hope"}, "hope"},
		{"an unknown level", nil, []string{"--log-level=loud"}, "must be one of"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SHOP_MYSQL", goodMySQL)
			t.Setenv("SHOP_REDIS", goodRedis)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			code, stdout, stderr := command(t.Context(), test.args...)
			if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "shop: ") || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, said %q, want 2 and one line with %q", code, stderr, test.says)
			}
			if strings.Contains(stdout+stderr, "geheim") {
				t.Errorf("a password was printed: %s%s", stdout, stderr)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	if code, version, stderr := command(t.Context(), "--version"); code != 0 || stderr != "" || !strings.HasPrefix(version, flags.Version) {
		t.Errorf("exit code %d, %q, stderr %q", code, version, stderr)
	}
}

func TestHelpNamesEverySettingAndNoSecret(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	t.Setenv("SHOP_REDIS", goodRedis)
	code, help, stderr := command(t.Context(), "--help")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	for field := range reflect.TypeFor[settings]().Fields() {
		if field.Anonymous {
			continue
		}
		if least := field.Tag.Get("min"); least != "" && !strings.Contains(strings.Join(strings.Fields(help), " "), "Range: "+least) {
			t.Errorf("the help does not show the range of %s", field.Name)
		}
		if env := field.Tag.Get("env"); env == "" || !strings.Contains(help, "($"+env+")") {
			t.Errorf("the help does not name the environment variable %q of %s", env, field.Name)
		}
	}
	if strings.Contains(help, "geheim") {
		t.Error("the help shows a password")
	}
}

func TestAPortInUseIsOneLineAndExitCode1(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	code, _, stderr := command(t.Context(), "--addr="+taken.Addr().String())
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "address already in use") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}

func TestServersThatNeverComeAreOneLineAndExitCode1(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	t.Setenv("SHOP_REDIS", goodRedis)
	code, _, stderr := command(t.Context(), "--addr=127.0.0.1:0", "--startup-timeout=1s")
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := lines[len(lines)-1]; code != 1 || !strings.HasPrefix(last, "shop: gave up after 1s") ||
		!strings.Contains(last, "mysql at 127.0.0.1:1") || !strings.Contains(last, "redis at 127.0.0.1:1") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
	if strings.Contains(stderr, "geheim") {
		t.Errorf("a password was printed: %s", stderr)
	}
}

func TestHealthcheck(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, addr := range []string{"127.0.0.1:" + port, ":" + port, "0.0.0.0:" + port} {
		if code, _, stderr := command(t.Context(), "healthcheck", "--addr="+addr); code != 0 {
			t.Errorf("a ready shop at %s: exit code %d, said %q", addr, code, stderr)
		}
	}
	if code, _, stderr := command(t.Context(), "healthcheck", "--addr=127.0.0.1:1", "--internal-addr=:"+port); code != 0 {
		t.Errorf("a shop with an internal listener: exit code %d, said %q", code, stderr)
	}
	status = http.StatusServiceUnavailable
	if code, _, stderr := command(t.Context(), "healthcheck", "--addr=:"+port); code != 1 || !strings.Contains(stderr, "not ready: 503") {
		t.Errorf("a shop that is not ready: exit code %d, said %q", code, stderr)
	}
	server.Close()
	if code, _, stderr := command(t.Context(), "healthcheck", "--addr=:"+port); code != 1 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("no shop: exit code %d, said %q", code, stderr)
	}
}

// command runs the program in this process.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, log bytes.Buffer
	code = run(ctx, args, &out, &log)
	return code, out.String(), log.String()
}

// TestTheDeploymentsNameSettingsThatThereAre looks for misspelled settings in what is deployed.
func TestTheDeploymentsNameSettingsThatThereAre(t *testing.T) {
	_, help, _ := command(t.Context(), "--help")
	setting := regexp.MustCompile(`\bSHOP_[A-Z_]+\b`)
	for _, file := range []string{"docker-compose.production.yml", "deploy/kubernetes/shop.yaml", "Dockerfile"} {
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		named := setting.FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no setting", file)
		}
		for _, name := range named {
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(help) {
				t.Errorf("%s sets %s, which shop --help does not have", file, name)
			}
		}
	}
}

// TestTheDeploymentsPassEverySettingOn: what production.env sets without a line of its own reaches no shop.
func TestTheDeploymentsPassEverySettingOn(t *testing.T) {
	set := []string{
		"SHOP_ADDR", "SHOP_INTERNAL_ADDR", "SHOP_STAFF_ADDR", "SHOP_MYSQL", "SHOP_MYSQL_FILE", "SHOP_NAME", "SHOP_MIGRATE",
		"SHOP_REDIS", "SHOP_REDIS_FILE", // in one line: a copy without locks has none of it
	}
	lab, _ := reflect.TypeFor[settings]().FieldByName("labSettings")
	computed := strings.NewReplacer("${strategy}", defaultStrategy, "${lease}", lockDefaults["lease"])
	for _, file := range []string{"docker-compose.production.yml", "docker-compose.galera.yml"} {
		text, err := os.ReadFile("../../../" + file)
		if errors.Is(err, fs.ErrNotExist) && lockDefaults == nil {
			continue // a copy without locks has no Galera
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
			env, value := field.Tag.Get("env"), computed.Replace(field.Tag.Get("default"))
			if env == "" || slices.Contains(set, env) || field.Index[0] == lab.Index[0] {
				continue
			}
			if field.Type.Kind() == reflect.Bool {
				value = cmp.Or(value, "false")
			}
			if line := fmt.Sprintf("%s: ${%s:-%s}", env, env, value); !strings.Contains(string(text), " "+line+"\n") {
				t.Errorf("%s has no %q, with the default of %s", file, line, field.Name)
			}
		}
	}
}

// TestKubernetesHasEverySettingThatThePagesName: in the ConfigMap, what is to be changed stands with its default.
func TestKubernetesHasEverySettingThatThePagesName(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/kubernetes/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := ""
	for _, page := range pages {
		if name := filepath.Base(page); name == "operate.md" || name == "reservations.md" {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			named += string(text)
		}
	}
	if named == "" {
		t.Fatal("there are no pages")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		env := field.Tag.Get("env")
		if env == "" || !regexp.MustCompile(`\b`+env+`\b`).MatchString(named) {
			continue
		}
		if !regexp.MustCompile(`(?m)^  ` + env + `: .`).Match(manifest) {
			t.Errorf("the ConfigMap of deploy/kubernetes/shop.yaml has no %s", env)
		}
	}
}

func TestSecretsComeFromFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mysql")
	if err := os.WriteFile(path, []byte("shop:geheim@db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_MYSQL_FILE", path)
	if code, _, stderr := command(t.Context()); code != 2 || !strings.Contains(stderr, "the MySQL DSN cannot be read") || strings.Contains(stderr, "geheim") {
		t.Errorf("exit code %d, said %q, want that the DSN in the file was read", code, stderr)
	}
}
