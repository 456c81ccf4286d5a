package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckWritable says whether WriteFile will be able to write the file, and
// leaves nothing behind.
func CheckWritable(path string) error {
	to, err := target(path)
	if err != nil || !to.replaced {
		return err
	}
	probe, err := unfinished(to.path)
	if err != nil {
		return cannotWrite(path, err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// destination is where a report goes.
type destination struct {
	path     string // with links followed
	replaced bool   // by a new file; a device or a pipe is written to instead
}

func target(path string) (destination, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return destination{}, fmt.Errorf("cannot write %s: it is a folder, want a file's name", path)
	case err == nil && !info.Mode().IsRegular():
		return destination{path: path}, nil
	}
	if followed, err := filepath.EvalSymlinks(path); err == nil {
		path = followed
	}
	return destination{path: path, replaced: true}, nil
}

// Form is one way to write a report.
type Form func(Report, io.Writer) error

// WriteFile writes the report to a file, whole or not at all. What is no file,
// such as a pipe, it writes to as it goes.
func (r Report) WriteFile(path string, form Form) error {
	to, err := target(path)
	if err != nil {
		return err
	}
	if to.replaced {
		err = r.replace(to.path, form)
	} else {
		err = r.writeInto(to.path, form)
	}
	if err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// cannotWrite tells the cause without the names that it happened under, which are of no use to anybody.
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

// unfinished creates the file that is given the name when it is whole.
func unfinished(path string) (*os.File, error) {
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s does not exist", folder)
	}
	return os.CreateTemp(folder, ".stocklock-*")
}

func (r Report) replace(path string, form Form) error {
	file, err := unfinished(path)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // gone already when all went well
	if err := r.writeAndClose(file, form); err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (r Report) writeInto(path string, form Form) error {
	existing, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return r.writeAndClose(existing, form)
}

func (r Report) writeAndClose(file *os.File, form Form) error {
	buffer := bufio.NewWriter(file)
	if err := form(r, buffer); err != nil {
		file.Close()
		return err
	}
	return errors.Join(buffer.Flush(), file.Close())
}

// JSON writes the report with one cell a line.
func (r Report) JSON(w io.Writer) error {
	cells := r.Cells
	r.Cells = nil
	head, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	const empty = "\"cells\": null\n}"
	if _, err := fmt.Fprintf(w, "%s\"cells\": [", head[:len(head)-len(empty)]); err != nil {
		return err
	}
	separator := "\n"
	for _, c := range cells {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, line); err != nil {
			return err
		}
		separator = ",\n"
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}
