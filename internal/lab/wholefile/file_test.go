package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func words(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func has(t *testing.T, path, want string) {
	t.Helper()
	if content, err := os.ReadFile(path); err != nil || string(content) != want {
		t.Errorf("%s has %q, %v, want %q", path, content, err, want)
	}
}

func TestAFileIsReplacedBehindItsLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, words("new")); err != nil {
		t.Fatal(err)
	}
	has(t, file, "new")
	if _, err := os.Readlink(link); err != nil {
		t.Error("the link is gone:", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of its owner alone has %v, %v", info.Mode(), err)
	}
}

func TestWhyAFileCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(file, "x.json"): "cannot write " + filepath.Join(file, "x.json") + ": not a directory",
		"/dev/null":                   "cannot write /dev/null: it is a device or a pipe",
		dir:                           "cannot write " + dir + ": it is a folder, want a file's name",
	} {
		for _, err := range []error{Check(path), Write(path, words("new"))} {
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestAMissingFolderIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "x.json")
	if err := errors.Join(Check(path), Write(path, words("new"))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
}

func TestNothingUnfinishedIsLeft(t *testing.T) {
	dir := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		_ = Write(filepath.Join(dir, "x.json"), func(io.Writer) error { panic("in the middle") })
	}()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestAFileThatIsNotCommittedLeavesTheOldOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.gob")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("new"); err != nil {
		t.Fatal(err)
	}
	file.Discard()
	has(t, path, "old")
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
