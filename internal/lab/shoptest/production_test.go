package shoptest

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/testserver"
)

const root = "../../.." // of the checkout

// labOnly is what a copy of the shop does without: internal/shop/copy.sh removes it.
func labOnly(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, "internal/shop/copy.sh"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^rm -r (internal/lab .*)$`).FindSubmatch(script)
	if line == nil {
		t.Fatal("copy.sh has no line with what only the lab needs")
	}
	return strings.Fields(string(line[1]))
}

// buildProduction builds the shop as it is deployed. It is linked once: the second time the go command
// finds it.
func buildProduction(t *testing.T) (program string) {
	t.Helper()
	testserver.NeedsServers(t)
	program = filepath.Join(processes.Dir(), "production")
	goTool(t, ".", "build", "-tags=nomsgpack", "-o", program, "./cmd/shop")
	return program
}

func goTool(t *testing.T, dir string, args ...string) (out string) {
	t.Helper()
	said, err := rig.GoCommand(t.Context(), root, append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return string(said)
}

func TestTheProductionShopContainsNothingThatBreaksIt(t *testing.T) {
	production := buildProduction(t)
	withLab, err := processes.ShopBinary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lab := regexp.MustCompile(`stocklock/internal/(lab/|shop/labmode|strategy/(ladder|baskets|declared))`)
	contained := func(program string) string { // the names of functions, which a program keeps for its stack traces
		content, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		return string(lab.Find(content))
	}
	if found := contained(production); found != "" {
		t.Errorf("the production shop contains %s", found)
	}
	if contained(withLab) == "" {
		t.Error("the shop with the lab does not contain it either: this test looks for the wrong names")
	}
	if about := goTool(t, ".", "version", "-m", production); strings.Contains(about, "-tags=lab") || strings.Contains(about, "vegeta") || strings.Contains(about, "toxiproxy") {
		t.Errorf("the production shop was built as %s", about)
	}
}

func TestAShopWithoutTheLabSaysHowToBuildIt(t *testing.T) {
	production := buildProduction(t)
	env := []string{"SHOP_MYSQL=shop:geheim@tcp(127.0.0.1:1)/stocklock"}
	for _, asked := range []struct {
		env  []string
		args []string
	}{{append(env, "SHOP_LAB=true"), nil}, {env, []string{"--lab"}}} {
		code, stderr := runProgram(t, production, asked.env, asked.args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "go build -tags lab ./cmd/shop") {
			t.Errorf("%v: exit code %d, said %q", asked, code, stderr)
		}
	}
	if code, stderr := runProgram(t, production, append(env, "SHOP_STRATEGY=none")); code != 2 || !strings.Contains(stderr, `no strategy "none"`) {
		t.Errorf("a strategy that breaks: exit code %d, said %q", code, stderr)
	}
}

func TestHeadersOfTheLabDoNothingOutsideIt(t *testing.T) {
	l := openShops(t, 1, "SHOP_LAB", "false")
	header := http.Header{labmode.NestedHeader: {"no such"}, labmode.RunHeader: {"run-1"}, labmode.StrategyHeader: {"none"}}
	item := l.item(1)
	if got := post(t.Context(), l.shops[0], item, header, "read kill"); got == nil || got.StatusCode != http.StatusCreated {
		t.Fatalf("answered %+v, want 201", got)
	}
	orders, err := l.store.ItemOrders(t.Context(), item.ID)
	if err != nil || len(orders) != 1 || orders[0].Strategy == "none" || orders[0].Run != "" {
		t.Errorf("the orders are %+v, %v", orders, err)
	}
}

func TestLabSettingsThatCannotBe(t *testing.T) {
	env := []string{"SHOP_MYSQL=shop:geheim@tcp(127.0.0.1:1)/stocklock"}
	for _, test := range []struct{ name, args, says string }{
		{"the lab for everybody", "--lab --addr=:0", "SHOP_LAB_ALLOW_REMOTE=true"},
		{"the lab at a public address", "--lab --addr=192.0.2.1:0", "SHOP_LAB_ALLOW_REMOTE=true"},
		{"lab settings without the lab", "--lab-work=1s", "need --lab (SHOP_LAB=true)"},
		{"the lab for everybody without the lab", "--lab-allow-remote", "need --lab (SHOP_LAB=true)"},
		{"more work than a minute", "--lab --lab-work=1m", "--lab-work (SHOP_LAB_WORK) is 1m0s: want 0s to 10s"},
		{"reservations without a listener of the staff", "--reservations --subject-header=X --limit=1 --staff-subject-header=X", "needs --staff-addr (SHOP_STAFF_ADDR)"},
		{"a strategy without its servers", "--strategy=redlock", "set --redis-quorum (SHOP_REDIS_QUORUM)"},
		{"a server that votes twice", "--strategy=redlock --redis-quorum=redis://:geheim@127.0.0.1,redis://127.0.0.1:1,redis://127.0.0.1:6379/1",
			"--redis-quorum (SHOP_REDIS_QUORUM): 127.0.0.1:6379 is there twice: want independent servers"},
	} {
		code, stderr := command(t, env, strings.Fields(test.args)...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "shop: ") || !strings.Contains(stderr, test.says) || strings.Contains(stderr, "geheim") {
			t.Errorf("%s: exit code %d, said %q, want 2 and one line with %q", test.name, code, stderr, test.says)
		}
	}
}

// When this variable is set to anything, all tests are run in the copy, and not only a few.
const wholeCopyEnv = "SHOP_COPY"

// copyTests are the tests with servers that are run in the copy: they sell, and read files of the
// checkout. The others were run here, on the same code.
const copyTests = "TestASaleIsRecorded|TestStaffChangesItems|TestTheDashboard|TestTheAlerts|TestTheDocs|TestHealthcheck|TestMigrateStatus|TestRecipes"

// besideByDay runs a test beside others, unless it runs all tests of a copy, which have all cores.
func besideByDay(t *testing.T) {
	if os.Getenv(wholeCopyEnv) == "" {
		t.Parallel()
	}
}

// TestTheShopCanBeCopied copies the shop into another module, builds it with its tests, and runs
// those that a copy could break.
func TestTheShopCanBeCopied(t *testing.T) {
	besideByDay(t)
	copied(t)
}

// TestAWayCanBeCopied has copies without the lock, with some of its strategies, and without reservations.
func TestAWayCanBeCopied(t *testing.T) {
	besideByDay(t)
	for _, ways := range []string{"conditional", "batched,optimistic", "fenced-relative,conditional"} {
		t.Run(ways, func(t *testing.T) {
			if ways != "conditional" && os.Getenv(wholeCopyEnv) == "" {
				t.Skip("compiled only with " + wholeCopyEnv)
			}
			options, reserves := []string{"--ways", ways}, ways == "batched,optimistic"
			if reserves {
				options = append(options, "--reservations")
			}
			dir := copied(t, options...)
			if _, err := os.Stat(filepath.Join(dir, "internal/stock/payment.go")); reserves != (err == nil) {
				t.Errorf("payments in the copy: %v", err)
			}
			_, err := os.Stat(filepath.Join(dir, "internal/redislock"))
			if locked := strings.Contains(ways, "fenced"); locked != (err == nil) {
				t.Errorf("the lock in the copy: %v", err)
			}
			if needed, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || strings.Contains(string(needed), "redis") != strings.Contains(ways, "fenced") {
				t.Errorf("the copy needs %s, %v", needed, err)
			}
			settings, err := os.ReadFile(filepath.Join(dir, "internal/shop/program/settings.go"))
			if first, _, _ := strings.Cut(ways, ","); err != nil || !strings.Contains(string(settings), `defaultStrategy = "`+first+`"`) {
				t.Errorf("the default is not %s, %v", first, err)
			}
		})
	}
}

// copied copies the shop, builds it with its tests, and runs those that a copy could break.
func copied(t *testing.T, options ...string) (dir string) {
	t.Helper()
	const module = "example.com/shop"
	dir = placeOfCopy(t)
	copying := exec.CommandContext(t.Context(), filepath.Join(root, "internal/shop/copy.sh"), append(options, dir, module)...)
	if said, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("copy.sh: %v\n%s", err, said)
	}
	for _, path := range labOnly(t) {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the copy has %s: %v", path, err)
		}
	}
	if needed, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || strings.Contains(string(needed), "vegeta") {
		t.Errorf("the copy needs modules of the lab, %v: %s", err, needed)
	}
	linksLeadSomewhere(t, dir)
	if os.Getenv(wholeCopyEnv) != "" {
		for _, target := range []string{"build", "lint", "test"} {
			run := exec.CommandContext(t.Context(), "make", "-C", dir, target)
			run.Env = append(os.Environ(), "GOFLAGS=") // not those of the lab
			if said, err := run.CombinedOutput(); err != nil {
				t.Errorf("make %s: %v\n%s", target, err, said)
			}
		}
		return dir
	}
	run := func(args ...string) (said string) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		// Other modules are compiled by now with the flags of this test. Without inlining the copy compiles in half the time.
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false -tags=nomsgpack '-gcflags="+module+"/...=-l -dwarf=false'")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	runTests := func(tests string, packages ...string) {
		said := run(append([]string{"test", "-vet=off", "-v", "-run", tests}, packages...)...)
		for name := range strings.SplitSeq(tests, "|") {
			if !strings.Contains(said, "=== RUN   "+name) {
				t.Errorf("no test of the copy is %s", name)
			}
		}
	}
	run("vet", "-assign", "./...") // compiles what is no test, and checks the types of all tests
	if len(options) == 0 {
		run("test", "-vet=off", "-short", ".")
		runTests(copyTests, "./internal/shop", "./internal/shop/program", "./internal/strategy")
	} else {
		runTests("TestOrdersOfEachWay", "./internal/shop")
	}
	return dir
}

// placeOfCopy is a folder that is not there yet, outside the repository. It is the same in each run, so that the compiler's
// cache has what is in it.
func placeOfCopy(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	place := filepath.Join(cache, "stocklock", "copies", strings.ReplaceAll(t.Name(), "/", "-"))
	if err != nil || os.MkdirAll(place, 0o700) != nil {
		place = t.TempDir()
	}
	lock, err := os.Open(place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // another checkout may test its own
		t.Fatal(err)
	}
	dir := filepath.Join(place, "copy")
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
	remove()
	t.Cleanup(remove)
	return dir
}

// linksLeadSomewhere follows the links from the pages of a copy to its files.
func linksLeadSomewhere(t *testing.T, dir string) {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 5 {
		t.Errorf("the copy has only the pages %v", pages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(link[1]))); err != nil {
				t.Errorf("%s links to %s, which the copy does not have", filepath.Base(page), link[1])
			}
		}
	}
}

// TestACopyIntoTheRepositoryIsRefused, which would copy itself.
func TestACopyIntoTheRepositoryIsRefused(t *testing.T) {
	dir := filepath.Join(root, "out", "a", "copy")
	said, err := exec.CommandContext(t.Context(), filepath.Join(root, "internal/shop/copy.sh"), dir, "example.com/shop").CombinedOutput()
	if err == nil || strings.Count(string(said), "\n") != 1 || !strings.Contains(string(said), "in this repository") {
		t.Errorf("%v, said %q", err, said)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

// TestTheShopHalfKnowsNothingOfTheLab reads its files: one name of the lab's in them would be a
// second home for it.
func TestTheShopHalfKnowsNothingOfTheLab(t *testing.T) {
	names := regexp.MustCompile(`X-Lab|SHOP_LAB|internal/shop/labmode"|internal/strategy/(ladder|baskets|declared)"`)
	removed := append(labOnly(t), "internal/shop/copy.sh")
	for _, half := range []string{"cmd/shop", "internal/shop", "internal/strategy", "internal/stock", "internal/sale", "internal/redislock", "internal/flags", "internal/redisconn", "internal/testserver", "sql"} {
		err := filepath.WalkDir(filepath.Join(root, half), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			for _, allowed := range removed {
				if path == filepath.Join(root, allowed) {
					if entry.IsDir() {
						return filepath.SkipDir
					}
					return nil
				}
			}
			if entry.IsDir() {
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if found := names.Find(content); found != nil {
				t.Errorf("%s names %s", path, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
