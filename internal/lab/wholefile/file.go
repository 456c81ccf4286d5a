// Package wholefile writes files that are complete or do not exist. A program that fails or is
// interrupted leaves the previous file of that name.
package wholefile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is an unfinished file. [File.Commit] gives it its name, in place of the file that had it.
type File struct {
	*os.File
	asked string // the name as it was given
	path  string // the name with links followed
}

// Create begins a file, and makes its folder where it is missing. Either [File.Commit] or [File.Discard] must end it. Discard does nothing
// after Commit.
func Create(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("cannot write %s: it is a folder, want a file's name", path)
	case err == nil && !info.Mode().IsRegular(): // a rename would put a file in its place, for everybody
		return nil, fmt.Errorf("cannot write %s: it is a device or a pipe", path)
	}
	final := path
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		final = followed
	}
	folder := filepath.Dir(final)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, cannotWrite(path, err)
	}
	unfinished, err := os.OpenFile(filepath.Join(folder, ".stocklock-"+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	if info != nil { // who reads the file stays as it was
		if err := unfinished.Chmod(info.Mode().Perm()); err != nil {
			return nil, cannotWrite(path, errors.Join(err, unfinished.Close(), os.Remove(unfinished.Name())))
		}
	}
	return &File{unfinished, path, final}, nil
}

// Write creates a file, lets write fill it, and commits it.
func Write(path string, write func(io.Writer) error) error {
	file, err := Create(path)
	if err != nil {
		return err
	}
	defer file.Discard()
	buffer := bufio.NewWriter(file)
	err = write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return cannotWrite(path, err)
	}
	return file.Commit()
}

// Check returns the error that [Create] would return, and leaves no file behind.
func Check(path string) error {
	file, err := Create(path)
	if err != nil {
		return err
	}
	file.Discard()
	return nil
}

// Commit gives the file its name.
func (f *File) Commit() error {
	err := f.Close()
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		return cannotWrite(f.asked, err)
	}
	return nil
}

// Discard removes the unfinished file. The file that had the name stays.
func (f *File) Discard() {
	f.Close()
	os.Remove(f.Name()) // gone already after Commit
}

// cannotWrite replaces the path of the unfinished file in an error by the path that was given.
func cannotWrite(path string, err error) error {
	var failed *fs.PathError
	var renaming *os.LinkError
	switch {
	case errors.As(err, &failed):
		err = failed.Err
	case errors.As(err, &renaming):
		err = renaming.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}
