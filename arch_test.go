package stocklock

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shopHalf says which packages of this module each package of the shop half may import. Tests may
// import internal/testserver besides.
var shopHalf = map[string][]string{
	"examples/checkout": nil, // a backend: it knows the contract alone
	"cmd/shop":          {"internal/shop/program"},

	"internal/shop/program": {"internal/shop", "internal/strategy", "internal/stock", "internal/redislock", "internal/flags",
		"internal/shop/tracing",                                                           // in production.go alone
		"internal/shop/labmode", "internal/strategy/ladder", "internal/strategy/baskets"}, // in lab.go alone
	"internal/shop":                           {"internal/stock", "internal/strategy", "internal/sale", "internal/redislock"},
	"internal/shop/tracing":                   {"internal/shop", "internal/strategy", "internal/stock", "internal/sale"},
	"internal/shop/labmode":                   {"internal/shop", "internal/strategy/ladder", "internal/strategy/declared", "internal/stock", "internal/strategy", "internal/sale", "internal/testserver"},
	"internal/strategy":                       {"internal/stock", "internal/redislock", "internal/sale"},
	"internal/strategy/strategytest":          {"internal/strategy", "internal/stock", "internal/stock/stocktest", "internal/sale", "internal/testserver"},
	"internal/strategy/declared":              {"internal/sale"},
	"internal/strategy/declared/declaredtest": {"internal/strategy/declared", "internal/strategy/strategytest", "internal/strategy", "internal/stock", "internal/sale"},
	"internal/strategy/ladder": {"internal/strategy", "internal/strategy/declared", "internal/stock", "internal/redislock",
		"internal/redislock/polling", "internal/sale", "sql/lab"},
	"internal/strategy/baskets": {"internal/strategy/ladder", "internal/strategy", "internal/strategy/declared", "internal/stock",
		"internal/redislock", "internal/sale"},
	"internal/stock/stocktest":   {"internal/stock", "internal/testserver"},
	"internal/stock":             {"sql"},
	"internal/sale":              {},
	"internal/flags":             {},
	"internal/redislock":         {"internal/redislock/polling"}, // in a test of both: the other way there is a cycle
	"internal/redislock/polling": {"internal/redislock"},
	"internal/redisconn":         {},
	"internal/testserver":        {"internal/redisconn"},
	"internal/stalltest":         {},
	"sql":                        {},
	"sql/lab":                    {"sql"},
}

// onlyForTheLab lists what a copy of the shop does without.
var onlyForTheLab = []string{"internal/shop/labmode", "internal/strategy/ladder", "internal/strategy/baskets",
	"internal/strategy/declared", "internal/strategy/declared/declaredtest", "sql/lab", "examples/checkout"}

// forTests lists what every test may import.
var forTests = []string{"internal/testserver", "internal/stalltest", "internal/stock/stocktest", "internal/strategy/strategytest", "internal/strategy/declared/declaredtest"}

// labHalf lists the only importers of internal/lab, and where pupils write.
var labHalf = []string{"internal/lab", "cmd/loadtest", "bench", "docs", "exercises"}

// reserved says which outside modules only some packages may import, and why.
var reserved = []struct {
	module string
	only   []string
	why    string
}{
	{"github.com/tsenart/vegeta/v12", []string{"internal/lab/load"}, "one place turns load into results"},
	{"github.com/gin-gonic/gin", []string{"internal/shop", "internal/shop/labmode", "internal/shop/tracing"}, "HTTP stays at the edge"},
	{"go.opentelemetry.io/", []string{"internal/shop/tracing"}, "the lab's build compiles none of it"},
	{"gorm.io/", []string{"internal/stock", "internal/shop/labmode"}, "SQL stays in the store"}, // where it may go to a replica
	{"github.com/Shopify/toxiproxy/v2", []string{"internal/lab/rig"}, "faults of the network are the rig's"},
	{"github.com/alecthomas/kong", []string{"internal/shop/program", "cmd/loadtest", "internal/flags"}, "flags are read by mains"},
}

const module = "stocklock"

// TestTheShopHalfNeverImportsTheLab looks at all packages with both build tags, and at their tests.
func TestTheShopHalfNeverImportsTheLab(t *testing.T) {
	for _, p := range listPackages(t) {
		if within(p.name(), labHalf) {
			continue
		}
		for _, imported := range p.all() {
			if name, ours := strings.CutPrefix(imported, module+"/"); ours && within(name, []string{"internal/lab"}) {
				t.Errorf("%s imports %s: only %v may import internal/lab", p.name(), name, labHalf)
			}
		}
	}
}

// TestTheShopHalfImportsOneWay holds the shop half to its table.
func TestTheShopHalfImportsOneWay(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		name := p.name()
		if name == module || within(name, labHalf) {
			continue
		}
		seen[name] = true
		allowed, known := shopHalf[name]
		if !known {
			t.Errorf("package %s has no line in the import rules: add one to arch_test.go", name)
		}
		for _, imported := range p.Imports {
			if inner, ours := strings.CutPrefix(imported, module+"/"); ours && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s: it may import only %v", name, inner, allowed)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			inner, ours := strings.CutPrefix(imported, module+"/")
			if ours && inner != name && !slices.Contains(forTests, inner) && !slices.Contains(allowed, inner) {
				t.Errorf("a test of %s imports %s: it may import only %v and %v", name, inner, forTests, allowed)
			}
		}
	}
	for name := range shopHalf {
		if !seen[name] && !slices.Contains(onlyForTheLab, name) {
			t.Errorf("the import rules name %s, which does not exist", name)
		}
	}
}

// TestTheLabAsksForStrategies: what the lab knows of a strategy is what a shop says of it. So a
// strategy that this checkout does not have works by its name, and the lab does not compile what sells.
// Tests hold the lab against the ladder, and may import it. The start of an exercise sells.
func TestTheLabAsksForStrategies(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, sells := range []string{"internal/strategy", "internal/strategy/ladder", "internal/strategy/baskets"} {
			if within(p.name(), []string{"internal/lab", "cmd/loadtest", "docs"}) && p.Name != "mine" && slices.Contains(p.Imports, module+"/"+sells) {
				t.Errorf("%s imports %s: have it ask the shop, with package catalog", p.name(), sells)
			}
		}
	}
}

// TestPackagesForTestsAreNamedSo holds packages to the convention of httptest: a package that only
// tests import has a name that ends in "test", and one with such a name is imported by tests alone,
// and by packages named so. Programs aside.
func TestPackagesForTestsAreNamedSo(t *testing.T) {
	packages := listPackages(t)
	by, byTests := map[string]string{}, map[string]string{} // one importer of each
	for _, p := range packages {
		for _, imported := range p.Imports {
			if !strings.HasSuffix(p.ImportPath, "test") || p.Name == "main" {
				by[imported] = p.name()
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if imported != p.ImportPath {
				byTests[imported] = p.name()
			}
		}
	}
	for _, p := range packages {
		forTests := strings.HasSuffix(p.Name, "test") && p.Name != "main"
		switch importer, used := by[p.ImportPath]; {
		case forTests && used:
			t.Errorf("%s imports %s, which is for tests by its name", importer, p.name())
		case p.name() == "internal/testserver" || p.name() == "internal/redislock/polling": // a copy of the shop has no other importers
		case !forTests && !used && byTests[p.ImportPath] != "":
			t.Errorf("only tests import %s, such as those of %s: give it a name that ends in \"test\"", p.name(), byTests[p.ImportPath])
		}
	}
}

// TestReservedModules holds outside modules to the one place that needs them.
func TestReservedModules(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, imported := range p.Imports {
			for _, r := range reserved {
				if strings.HasPrefix(imported, r.module) && !slices.Contains(r.only, p.name()) {
					t.Errorf("%s imports %s: only %v may, so that %s", p.name(), imported, r.only, r.why)
				}
			}
		}
	}
}

// reachClients names the packages of the programs and of the lab that may reach a client of go-redis,
// by their types or in their code, and says why. The compiler makes the 600 methods of the client
// again in each of them.
var reachClients = map[string]string{
	"internal/redisconn":         "sends what the lab and tests send, and shows none of its types",
	"internal/redislock":         "its users pass their clients",
	"internal/redislock/polling": "its users pass their clients",
	"internal/strategy":          "a strategy is made with clients",
	"internal/strategy/ladder":   "its strategies send commands",
	"internal/strategy/baskets":  "its strategies send commands",
	"internal/shop":              "opens the clients",
	"internal/shop/labmode":      "adds hooks to the clients",
	"internal/shop/program":      "passes the clients on",
	"internal/shop/tracing":      "adds hooks to the clients; the lab has no part of it",
	"internal/lab/soak":          "has a redislock.Locker say who waits",
}

// TestFewPackagesReachAClient looks for a method of the clients in what the compiler has made. What
// pupils write may reach them.
func TestFewPackagesReachAClient(t *testing.T) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range listPackages(t) {
		if within(p.name(), []string{"cmd", "internal/lab"}) && !strings.HasSuffix(p.ImportPath, "/start") {
			args = append(args, p.ImportPath)
		}
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		path, archive, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, ours := strings.CutPrefix(path, module+"/")
		if !ours || archive == "" {
			continue
		}
		compiled, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, may := reachClients[name]
		if reaches := bytes.Contains(compiled, []byte("ClusterAddSlotsRange")); reaches && !may {
			t.Errorf("%s reaches a client of go-redis, by a type or in its code: use internal/redisconn, or say in reachClients why not", name)
		} else if may && !reaches {
			t.Errorf("%s reaches no client of go-redis: take it off reachClients", name)
		}
	}
}

// TestTheLockCanBeCopied holds the lock to go-redis and the standard library.
func TestTheLockCanBeCopied(t *testing.T) {
	for _, p := range listPackages(t) {
		if !within(p.name(), []string{"internal/redislock"}) {
			continue
		}
		for _, imported := range p.Imports {
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".")
			inside := strings.HasPrefix(imported, module+"/internal/redislock")
			if !inside && (!standard || strings.HasPrefix(imported, module+"/")) && !strings.HasPrefix(imported, "github.com/redis/go-redis/v9") {
				t.Errorf("%s imports %s: it may import only go-redis and the standard library", p.ImportPath, imported)
			}
		}
	}
}

// within says whether a package lies in one of these folders.
func within(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
}

type listedPackage struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
}

func (p listedPackage) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func (p listedPackage) all() []string { return slices.Concat(p.Imports, p.TestImports, p.XTestImports) }

// listPackages lists all packages as they are with the tag lab, and then as they are without it.
func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	packages, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return packages
}

var listed = sync.OnceValues(func() (packages []listedPackage, err error) {
	for _, tags := range []string{"-tags=lab", "-tags="} {
		out, err := exec.Command("go", "list", tags, "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...").Output()
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
			var p listedPackage
			if err := d.Decode(&p); err != nil {
				return nil, err
			}
			packages = append(packages, p)
		}
	}
	return packages, nil
})
