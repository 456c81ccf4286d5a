package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// maxSize is more than any run has written: a whole matrix is some megabytes.
const maxSize = 256 << 20

// Read reads a file that [Report.JSON] wrote, in this version or an older one. Every form can be
// made of what it returns.
func Read(path string) (Report, error) {
	if path == "" {
		return Report{}, errors.New("the name of a file is empty: want a file that --json wrote")
	}
	file, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer file.Close()
	r, err := read(file)
	switch {
	case errors.As(err, new(errNewer)):
		return Report{}, fmt.Errorf("%s is the result of a newer loadtest: %w", path, err)
	case err != nil:
		return Report{}, fmt.Errorf("%s is no result of loadtest: %w", path, err)
	}
	return r, nil
}

func read(from io.Reader) (Report, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	switch {
	case err != nil:
		return Report{}, err
	case len(content) > maxSize:
		return Report{}, fmt.Errorf("it has more than %d MiB", maxSize>>20)
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // editors put a byte order mark first
	var r Report
	if err := decode(content, &r); err != nil {
		return Report{}, inPlainWords(err)
	}
	if r.Environment.Time == "" {
		return Report{}, errors.New("environment.time is missing: want a file that --json wrote")
	}
	if err := clean(reflect.ValueOf(&r), false); err != nil {
		return Report{}, errors.New(strings.TrimPrefix(err.Error(), "."))
	}
	return r, r.check()
}

// decode reads one result of any version.
func decode(content []byte, r *Report) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	var whole json.RawMessage
	if err := decoder.Decode(&whole); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("something follows it: want one result in a file")
	}
	version, err := versionOf(whole)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(whole, r); err != nil {
		return err
	}
	if version == 1 {
		err = r.fromVersion1(whole)
	}
	r.Version = Version
	return err
}

// inPlainWords describes a JSON error without the names of Go's types.
func inPlainWords(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case err == io.EOF:
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends in the middle")
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("it is JSON, but its whole is of the kind %s: want an object with environment and cells", wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s is of the kind %s, want %s", wrong.Field, wrong.Value, wrong.Type.Kind())
	}
	return err
}
