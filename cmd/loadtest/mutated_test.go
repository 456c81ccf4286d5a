//go:build mutations

package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/verdict"
)

// mutated is a mutation that is made. The working tree stays as it is.
type mutated struct {
	mutation
	sought // of those of the mutation, the one that is looked for
	files  map[string]string
	shop   string // empty for a mutation of no strategy
	lab    string // the load test, where it is what is mutated; empty for this one
}

// ofTheLab is what a shop does not have: a mutation there is one of the load test.
var ofTheLab = []string{"internal/lab/", "internal/testserver/"}

// isOfTheLab reports whether a mutation changes what starts and counts, and not the shop.
func (m mutation) isOfTheLab() bool {
	return slices.ContainsFunc(m.hunks, func(h hunk) bool {
		return slices.ContainsFunc(ofTheLab, func(folder string) bool { return strings.HasPrefix(h.file, folder) })
	})
}

// finders look for a defect, in the order in which they are tried. They return what they found, or
// nothing.
var finders = []struct {
	name string
	find func(t *testing.T, m mutated, args []string) string
}{
	{"matrix", inMatrix}, {"baskets", inGroup("baskets")}, {"reservations", inGroup("reservations")}, {"topology", inTopologies}, {"explore", inExploration}, {"judge", inJudgement}, {"tests", inTests},
}

// finding is what is kept of a mutation that was found.
type finding struct {
	Of        string // the source and the mutation
	By, Found string
	Seconds   int
}

// TestMutations makes one mutation at a time, and wants it found by what the list names, and nothing
// else to be found. A verdict that no change of the code can alter proves nothing. What was found is
// kept: the next run goes on from there, if the source is the same.
func TestMutations(t *testing.T) {
	const kept = repository + "/out/mutations.json"
	findings := map[string]finding{}
	if content, err := os.ReadFile(kept); err == nil {
		_ = json.Unmarshal(content, &findings) // what cannot be read is found again
	}
	source := sourceOf(t)
	var table strings.Builder
	for _, m := range mutations(t) {
		t.Run(m.name, func(t *testing.T) {
			if m.equivalent != "" {
				fmt.Fprintf(&table, "| %s | nothing | %s | |\n", m.name, m.equivalent)
				t.Skipf("equivalent: %s", m.equivalent)
			}
			f := findings[m.name]
			defer func() { fmt.Fprintf(&table, "| %s | %s | %s | %d s |\n", m.name, f.By, f.Found, f.Seconds) }()
			of := fmt.Sprintf("%x", sha256.Sum256([]byte(source+m.text)))
			if f.Of == of {
				t.Skipf("found by %s before: %s", f.By, f.Found)
			}
			f = finding{Of: of}
			files, err := m.files()
			if err != nil {
				t.Fatal(err)
			}
			made := mutated{mutation: m, files: files}
			if m.strategy != "" {
				made.shop = overlaytest.Shop(t, repository, files)
			}
			if m.strategy != "" && m.isOfTheLab() {
				made.lab = overlaytest.LoadTest(t, repository, files)
			}
			began := time.Now()
			f.By, f.Found = made.findBy(t)
			f.Seconds = int(time.Since(began).Seconds())
			if t.Failed() {
				return
			}
			t.Logf("found by %s: %s", f.By, f.Found)
			findings[m.name] = f
			if err := keep(kept, findings); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Logf("what finds what:\n%s", &table)
}

func keep(file string, findings map[string]finding) error {
	content, err := json.MarshalIndent(findings, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// findBy wants each finder that the list names to find it.
func (m mutated) findBy(t *testing.T) (by, found string) {
	var all, what []string
	for _, m.sought = range m.mutation.sought {
		by, found := m.findByOne(t)
		all, what = append(all, by), append(what, found)
	}
	return strings.Join(all, ", "), strings.Join(what, "; ")
}

// findByOne tries one of them, and then the others, but not with -short.
func (m mutated) findByOne(t *testing.T) (by, found string) {
	for i, f := range finders {
		if f.name != m.finder[0] {
			continue
		}
		if found := f.find(t, m, m.finder[1:]); found != "" {
			if m.found != "" && found != m.found {
				t.Errorf("%s found %s, want %s", f.name, found, m.found)
			}
			return f.name, found
		}
		if testing.Short() {
			t.Fatalf("%s did not find it", strings.Join(m.finder, " "))
		}
		for _, f := range slices.Delete(slices.Clone(finders), i, i+1) {
			if found := f.find(t, m, nil); found != "" {
				t.Errorf("%s found it, and %s did not: %s", f.name, strings.Join(m.finder, " "), found)
				return f.name, found
			}
		}
	}
	t.Error("it survives")
	return "", ""
}

// loadtest runs a subcommand on the shop of a strategy, and reports whether it was surprised.
func (m mutated) loadtest(t *testing.T, args ...string) (out string, surprised bool) {
	t.Helper()
	if m.shop == "" {
		return "", false
	}
	var stdout, stderr bytes.Buffer
	args = append(args, "--shop-binary", m.shop)
	code := -1
	if m.lab == "" {
		code = run(t.Context(), args, &stdout, &stderr)
	} else {
		mutated := exec.CommandContext(t.Context(), m.lab, args...)
		mutated.Stdout, mutated.Stderr = &stdout, &stderr
		_ = mutated.Run() // its exit code says it
		code = mutated.ProcessState.ExitCode()
	}
	if code != exitExpected && code != exitSurprised {
		t.Logf("loadtest %v: exit code %d\n%s%s", args, code, &stdout, &stderr)
	}
	return stdout.String(), code == exitSurprised
}

// inMatrix returns the cells that surprised.
func inMatrix(t *testing.T, m mutated, args []string) string {
	return inCells(t, m, "all", args)
}

// inGroup returns the cells of a group that surprised.
func inGroup(name string) func(*testing.T, mutated, []string) string {
	return func(t *testing.T, m mutated, args []string) string {
		return inCells(t, m, name, args)
	}
}

func inTopologies(t *testing.T, m mutated, args []string) string {
	return inCells(t, m, cmp.Or(strings.Join(args, ","), scenario.Topologies), nil)
}

func inCells(t *testing.T, m mutated, scenarios string, args []string) string {
	results := filepath.Join(t.TempDir(), "results.json")
	out, surprised := m.loadtest(t, append([]string{"run", m.strategy + ":" + scenarios, "--out", results}, args...)...)
	if !surprised {
		return ""
	}
	var r report.Report
	content, err := os.ReadFile(results)
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var cells []string
	for _, c := range r.Surprises() {
		t.Logf("%s: %s, expected %s %s", c.Scenario, c.Verdict, c.Expected, c.Problem)
		if c.Verdict != verdict.Invalid || c.Errors > 0 || m.isOfTheLab() { // else the harness failed
			cells = append(cells, c.Scenario)
		}
	}
	slices.Sort(cells)
	return strings.Join(cells, " ")
}

var unexplained = regexp.MustCompile(`^\w+ by (\S+): `)

// inExploration returns the causes of the schedules that surprised.
func inExploration(t *testing.T, m mutated, args []string) string {
	out, surprised := m.loadtest(t, append([]string{"explore", m.strategy, "--out", "-"}, args...)...)
	if !surprised {
		return ""
	}
	var results []survey.Result
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var causes []string
	for _, r := range results {
		for _, surprise := range r.Surprises {
			t.Logf("%s: %s", r.Name(), surprise)
			if by := unexplained.FindStringSubmatch(surprise.String()); by != nil {
				causes = append(causes, by[1])
			}
		}
	}
	slices.Sort(causes)
	return strings.Join(slices.Compact(causes), " ")
}

// inJudgement returns the properties that something contradicts.
func inJudgement(t *testing.T, m mutated, args []string) string {
	out, surprised := m.loadtest(t, append([]string{"explore", m.strategy, "--judge"}, args...)...)
	if !surprised {
		return ""
	}
	return strings.Join(regexp.MustCompile(`\S.* contradicts .*\S`).FindAllString(out, -1), "; ")
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// inTests returns the tests that fail. The arguments begin with a package; without them, it is that of
// the file.
func inTests(t *testing.T, m mutated, args []string) string {
	if len(args) == 0 {
		args = []string{"./" + path.Dir(m.hunks[0].file)}
	} else if m.found != "" {
		args = append(args, "-run", "^("+strings.ReplaceAll(m.found, " ", "|")+")$")
	}
	// TestTheLockIsSmall counts lines.
	args = append([]string{"test", "-vet=off", "-count=1", "-timeout", "5m", "-skip", "TestTheLockIsSmall", "-overlay", overlaytest.Overlay(t, repository, m.files)}, args...)
	out, err := rig.GoCommand(t.Context(), repository, args...).CombinedOutput()
	var failed []string
	for _, name := range failedTest.FindAllSubmatch(out, -1) {
		failed = append(failed, string(name[1]))
	}
	if err != nil && len(failed) == 0 && !bytes.Contains(out, []byte("panic: ")) {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	if err != nil && len(failed) == 0 {
		return "panic"
	}
	slices.Sort(failed)
	return strings.Join(failed, " ")
}

// sourceOf is one text for all source, but this program and its list.
func sourceOf(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(repository, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".go", ".lua", ".sql", ".mod"}, filepath.Ext(file)) || strings.Contains(file, "/cmd/loadtest/mutat") {
			return err
		}
		content, err := os.ReadFile(file)
		fmt.Fprintf(sum, "%s %d\n%s", file, len(content), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}
