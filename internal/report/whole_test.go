package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFileIsReplacedBehindItsLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := saved(t).WriteFile(link, Report.JSON); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err != nil {
		t.Error("the file has no report:", err)
	}
	if _, err := os.Readlink(link); err != nil {
		t.Error("the link is gone:", err)
	}
}

// A rename over a device or a pipe would put a file in its place, for everybody.
func TestWhatIsNoFileIsWrittenTo(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckWritable(pipe); err != nil {
		t.Fatal(err)
	}
	read := make(chan []byte, 1)
	go func() {
		content, _ := os.ReadFile(pipe)
		read <- content
	}()
	if err := saved(t).WriteFile(pipe, Report.Markdown); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatal("the pipe was replaced:", info, err)
	}
	var want bytes.Buffer
	if err := saved(t).Markdown(&want); err != nil {
		t.Fatal(err)
	}
	if got := <-read; !bytes.Equal(got, want.Bytes()) {
		t.Errorf("read %q, want %q", got, want.Bytes())
	}
}

func TestWhyAFileCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "x.json"): "cannot write " + filepath.Join(dir, "no", "x.json") + ": the folder " + filepath.Join(dir, "no") + " does not exist",
		filepath.Join(file, "x.json"):      "cannot write " + filepath.Join(file, "x.json") + ": not a directory",
		dir:                                "cannot write " + dir + ": it is a folder, want a file's name",
	} {
		for _, err := range []error{CheckWritable(path), saved(t).WriteFile(path, Report.JSON)} {
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestNothingUnfinishedIsLeft(t *testing.T) {
	dir := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the form did not panic")
			}
		}()
		saved(t).WriteFile(filepath.Join(dir, "x.json"), func(Report, io.Writer) error { panic("in the middle") })
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
	if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
		t.Errorf("the file has %q, %v", content, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
