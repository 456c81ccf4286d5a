package verdict

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCausesAreListedOnce looks for words of causes in code that is not this package's. What is called as one is none.
func TestCausesAreListedOnce(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	word, name := regexp.MustCompile(`['"]([\w-]+)['"]`), regexp.MustCompile(`\bName: +"[\w-]+"`)
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "out", "testdata", "verdict"}, d.Name()):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".js" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		found := map[Cause]bool{}
		for _, match := range word.FindAllSubmatch(name.ReplaceAll(text, nil), -1) {
			found[Cause(match[1])] = true
		}
		listed := 0
		for cause := range found {
			_, old := renamed[cause]
			if cause.Doc() != "" || old && cause != "late-release" && cause != "failover" {
				listed++
			}
		}
		if files++; listed > 3 {
			t.Errorf("%s lists %d causes: read them from this package", path, listed)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// TestOldWordsOfCauses are read as the new ones, which stand for themselves.
func TestOldWordsOfCauses(t *testing.T) {
	for old, now := range renamed {
		var c Cause
		if err := json.Unmarshal([]byte(`"`+string(old)+`"`), &c); err != nil || c != now || now.Doc() == "" {
			t.Errorf("%s is read as %q, %v, want %s", old, c, err, now)
		}
		if old.Doc() != "" {
			t.Errorf("%s is an old word and a new one", old)
		}
	}
	for cause := range Causes() {
		var c Cause
		if err := json.Unmarshal([]byte(`"`+string(cause)+`"`), &c); err != nil || c != cause || cause.Doc() == "" {
			t.Errorf("%s is read as %q, %v, and means %q", cause, c, err, cause.Doc())
		}
	}
}
