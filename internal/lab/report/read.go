package report

import (
	"bufio"
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

// Read reads what [Report.JSON] wrote. What it returns, every form can be made of.
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
	if err != nil {
		return Report{}, fmt.Errorf("%s is no result of loadtest: %w", path, err)
	}
	return r, nil
}

func read(from io.Reader) (Report, error) {
	limited := &io.LimitedReader{R: from, N: maxSize + 1}
	buffered := bufio.NewReader(limited)
	const byteOrderMark = "\ufeff" // editors put it first
	if start, _ := buffered.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		buffered.Discard(len(byteOrderMark))
	}
	var r Report
	decoder := json.NewDecoder(buffered)
	err := decoder.Decode(&r)
	if err == nil {
		err = ends(decoder)
	}
	switch {
	case limited.N == 0:
		return Report{}, fmt.Errorf("it has more than %d MiB", maxSize>>20)
	case err != nil:
		return Report{}, inPlainWords(err)
	case r.Environment.Time == "":
		return Report{}, errors.New("environment.time is missing: want a file that --json wrote")
	}
	if err := clean(reflect.ValueOf(&r), false); err != nil {
		return Report{}, errors.New(strings.TrimPrefix(err.Error(), "."))
	}
	return r, r.check()
}

func ends(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("something follows it: want one result in a file")
	}
	return nil
}

// inPlainWords says what is wrong without the names of Go's types.
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
