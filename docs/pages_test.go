//go:build lab

// Package docs has the tests of the pages: links lead somewhere, and translations are up to date.
package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/site"
	"stocklock/internal/redislock"
)

const root = ".."

// pages lists the Markdown files of the repository by their paths below it.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && skipped(path, d.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			all = append(all, relative)
		}
		return nil
	})
	if err != nil || len(all) < 50 {
		t.Fatalf("found %d pages: %v", len(all), err)
	}
	return all
}

// skipped says whether a folder holds what is made, or files of others.
func skipped(path, name string) bool {
	return path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "out", "exercises", "node_modules", "testdata"}, name))
}

var (
	command = regexp.MustCompile("(?m)(?:^\\$ |`|&& )make ([a-z-]+)|(scripts/[a-z-]+\\.sh)")
	named   = regexp.MustCompile(`\bTest[A-Z]\w*`)
)

// TestTheSiteHasEveryPage: some page links to each page, and no link leads to what is not there.
func TestTheSiteHasEveryPage(t *testing.T) {
	files, err := site.Build(os.DirFS(root), report.Report{})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		if files[site.Name(page)] == nil {
			t.Errorf("no page leads to %s", page)
		}
	}
	for _, name := range mistakes.Names() {
		for _, language := range []string{"en", "zh-CN"} {
			page, heading, _ := strings.Cut(mistakes.Section(name, language), "#")
			if !bytes.Contains(files[site.Name(page)], []byte(` id="`+heading+`"`)) {
				t.Errorf("the site has no %s", mistakes.Section(name, language))
			}
		}
	}
}

// TestCommandsOfPagesAreThere holds each `make TARGET` to the Makefile, and each `scripts/NAME` to its
// file. The changelog names what was there.
func TestCommandsOfPagesAreThere(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		for _, m := range command.FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(root, m[2])); m[2] != "" && err != nil {
				t.Errorf("%s names %s, which is not there", page, m[2])
			}
			if m[1] != "" && !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which is no target", page, m[1])
			}
		}
	}
}

// TestNamedTestsExist: a page may name a test, or the beginning of some as `go test -run` takes it.
// The CHANGELOG names what there was.
func TestNamedTestsExist(t *testing.T) {
	var declared strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		declared.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		for _, name := range named.FindAllString(read(t, page), -1) {
			if page != "CHANGELOG.md" && !strings.Contains(declared.String(), "\nfunc "+name) {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}

func read(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const chinese = ".zh-CN.md"

// translations has a line for each page that there is in two languages: the English page, and what
// both were when somebody last made them say the same.
const translations = "translations.txt"

var record = flag.Bool("record-translations", false, "the pages say the same in both languages now: note that")

// TestTranslations finds a page that has changed in one language and not in the other. What a
// command has printed is not compared.
func TestTranslations(t *testing.T) {
	noted := map[string]string{}
	content, err := os.ReadFile(translations)
	if err != nil && !*record {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		page, sums, _ := strings.Cut(strings.TrimSpace(line), " ")
		noted[page] = sums
	}
	var now bytes.Buffer
	found := 0
	for _, translated := range pages(t) {
		english, is := strings.CutSuffix(translated, chinese)
		if !is {
			continue
		}
		found++
		english += ".md"
		sums := sum(read(t, english)) + " " + sum(read(t, translated))
		fmt.Fprintf(&now, "%s %s\n", english, sums)
		if before := noted[english]; before != sums && !*record {
			t.Errorf("%s: %s. Make both say the same, then: scripts/lab-go.sh test ./docs -run TestTranslations -record-translations",
				english, changed(before, sums))
		}
	}
	if found == 0 {
		t.Error("no page is translated")
	}
	if *record {
		if err := os.WriteFile(translations, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func changed(before, now string) string {
	wasEnglish, wasChinese, _ := strings.Cut(before, " ")
	english, chinese, _ := strings.Cut(now, " ")
	switch {
	case before == "":
		return "it has a translation that nobody has noted"
	case wasEnglish == english:
		return "only the Chinese page has changed"
	case wasChinese == chinese:
		return "only the English page has changed"
	}
	return "both pages have changed"
}

// made is what `make docs` puts into the pages of both languages.
var (
	made  = regexp.MustCompile("(?ms)^<!-- made by .*?^<!-- end of what is made -->")
	facts = regexp.MustCompile("(?ms)(^## `[a-z0-9-]+`\n)\n.*?\n\n")
)

var console = regexp.MustCompile("(?ms)^```console\n.*?^```")

// sum is a short sum of what is written by hand on a page, without what its commands have printed.
func sum(page string) string {
	page = made.ReplaceAllString(page, "")
	page = facts.ReplaceAllString(page, "$1")
	page = console.ReplaceAllStringFunc(page, func(block string) string {
		var commands strings.Builder
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "$ ") {
				commands.WriteString(line)
			}
		}
		return commands.String()
	})
	h := sha256.Sum256([]byte(page))
	return hex.EncodeToString(h[:8])
}

// TestTheReadmesNameTheDefaultLease: a new [redislock.DefaultLease] has to reach them.
func TestTheReadmesNameTheDefaultLease(t *testing.T) {
	for _, file := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, lease := range regexp.MustCompile(`(?:lease|租约) (\d+) ?(?:s|秒)`).FindAllStringSubmatch(string(text), -1) {
			if lease[1] != fmt.Sprint(redislock.DefaultLease.Seconds()) {
				t.Errorf("%s says %q: redislock.DefaultLease is %s", file, lease[0], redislock.DefaultLease)
			}
		}
	}
}
