package report

import (
	"encoding/json"
	"fmt"

	"stocklock/internal/lab/explain"
)

// Version is the format of a saved result. Version 2 keeps the causes and facts of an explanation,
// of which sentences are made when it is shown. A result without a version is version 1.
const Version = 2

// versionOf is the version of a saved result, before anything else of it is read.
func versionOf(content []byte) (int, error) {
	var file struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return 0, err
	}
	switch {
	case file.Version == nil:
		return 1, nil
	case *file.Version < 1:
		return 0, fmt.Errorf("version is %d, want 1 to %d", *file.Version, Version)
	case *file.Version > Version:
		return 0, errNewer{*file.Version}
	}
	return *file.Version, nil
}

// errNewer is the version of a result that a newer loadtest wrote.
type errNewer struct{ version int }

func (e errNewer) Error() string {
	return fmt.Sprintf("version is %d, and this loadtest reads up to %d: a newer loadtest can show it", e.version, Version)
}

// version1 has the values to which version 1 gave another name or form.
type version1 struct {
	Environment struct {
		Sites int `json:"sites"` // what testbeds were called
	} `json:"environment"`
	Cells []struct {
		Strikes     int64 `json:"strikes"` // what faults_met was called
		Explanation struct {
			Sentence string `json:"sentence"`
		} `json:"explanation"`
	} `json:"cells"`
}

// fromVersion1 brings a report that was read from version 1 to what it would be in this one.
// Sentences stay the words that were saved.
func (r *Report) fromVersion1(content []byte) error {
	var old version1
	if err := json.Unmarshal(content, &old); err != nil {
		return err
	}
	if r.Environment.Testbeds == 0 {
		r.Environment.Testbeds = old.Environment.Sites
	}
	for i, c := range r.Cells {
		r.Cells[i].FaultsMet = max(c.FaultsMet, old.Cells[i].Strikes)
		x := c.Explanation
		if x == nil {
			continue
		}
		if sentence := old.Cells[i].Explanation.Sentence; len(x.Why) == 0 && sentence != "" {
			x.Why = []explain.Text{{Words: sentence}}
		}
		for n, s := range x.Steps {
			if s.Text.Words == "asks" {
				x.Steps[n].Text = explain.Text{Phrase: explain.Asks}
			}
		}
	}
	return nil
}
