package stocklock

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// imports says which packages of this module each package may import. It is a
// statement of policy: the shop half never imports the lab half, and the lock
// stands alone.
var imports = map[string][]string{
	"cmd/shop":     {"internal/shop", "internal/strategy", "internal/stock", "internal/redislock", "internal/fault", "internal/trace"},
	"cmd/loadtest": {"internal/report", "internal/trial", "internal/scenario", "internal/strategy", "internal/stock", "internal/rig", "internal/trace", "internal/soak", "internal/scale", "internal/wholefile"},

	"docs/make": {"internal/scenario", "internal/strategy"},

	"internal/report":      {"internal/tabular", "internal/trial", "internal/explain", "internal/scenario", "internal/strategy", "internal/wholefile"},
	"internal/trial":       {"internal/scenario", "internal/strategy", "internal/stock", "internal/rig", "internal/explain", "internal/trace", "internal/fault"},
	"internal/explain":     {"internal/stock", "internal/trace"},
	"internal/scale":       {"internal/tabular", "internal/trial", "internal/rig", "internal/stock"},
	"internal/soak":        {"internal/tabular", "internal/trial", "internal/rig", "internal/strategy", "internal/stock", "internal/trace"},
	"internal/scenario":    {"internal/strategy", "internal/rig", "internal/fault", "internal/trace"},
	"internal/rig":         {},
	"internal/rig/rigtest": {"internal/rig"},
	"internal/strategy":    {"internal/stock", "internal/redislock", "internal/redislock/polling", "internal/trace"},
	"internal/shop":        {"internal/stock", "internal/strategy", "internal/trace", "internal/fault", "internal/redislock"},
	"internal/stock":       {"sql"},
	"internal/fault":       {"internal/trace"},
	"internal/trace":       {},
	"internal/redislock":   {},
	// One package below the lock.
	"internal/redislock/polling": {"internal/redislock"},

	"internal/tabular":   {},
	"internal/wholefile": {},
	"sql":                {},
}

// reserved says which outside modules only some packages may import, and why.
var reserved = []struct {
	module string
	only   []string
	why    string
}{
	{"github.com/tsenart/vegeta/v12", []string{"internal/trial"}, "one place turns load into results"},
	{"github.com/gin-gonic/gin", []string{"internal/shop"}, "HTTP stays at the edge"},
	{"gorm.io/", []string{"internal/stock"}, "SQL stays in the store"},
	{"github.com/Shopify/toxiproxy/v2", []string{"internal/rig"}, "faults of the network are the rig's"},
	{"github.com/alecthomas/kong", []string{"cmd/shop", "cmd/loadtest"}, "flags are read by mains"},
}

const module = "stocklock"

// TestImportsRunOneWay holds the imports of all packages, tests aside, to the
// rules above.
func TestImportsRunOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.ImportPath == module {
			continue // this test's own package
		}
		seen[name] = true
		allowed, known := imports[name]
		if !known {
			t.Errorf("package %s has no line in the import rules: add one to arch_test.go", name)
		}
		for _, imported := range p.Imports {
			if inner, ok := strings.CutPrefix(imported, module+"/"); ok && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s: it may import only %v", name, inner, allowed)
			}
			for _, r := range reserved {
				if strings.HasPrefix(imported, r.module) && !slices.Contains(r.only, name) {
					t.Errorf("%s imports %s: only %v may, so that %s", name, imported, r.only, r.why)
				}
			}
		}
	}
	for name := range imports {
		if !seen[name] {
			t.Errorf("the import rules name %s, which does not exist", name)
		}
	}
}

// TestTheLockCanBeCopied holds the lock to go-redis and the standard library.
func TestTheLockCanBeCopied(t *testing.T) {
	for _, p := range listPackages(t, "./internal/redislock") {
		for _, imported := range p.Imports {
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".")
			if !standard && imported != "github.com/redis/go-redis/v9" {
				t.Errorf("%s imports %s: it may import only go-redis and the standard library", p.ImportPath, imported)
			}
		}
	}
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

func listPackages(t *testing.T, pattern string) []listedPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", pattern).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pattern, err)
	}
	var packages []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list %s: %v", pattern, err)
		}
		packages = append(packages, p)
	}
}
