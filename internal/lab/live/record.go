package live

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
)

// record is what was seen of one run of a cell, ordered by time.
type record struct {
	scene   scene
	entries []Entry
}

// replay draws the record with everything that is known at the end.
func (r *record) replay(ended verdict.Kind) *picture {
	s := r.scene
	s.Replay = true
	if ended == verdict.Oversold {
		s.Clashed = r.clashed()
	}
	s.Exclusive = s.Exclusive && ended == verdict.Oversold
	s.Rows = min(max(r.drawn(s).most, 1), mostRows) // as many as there were at once
	return r.drawn(s)
}

func (r *record) drawn(s scene) *picture {
	p := newPicture(s)
	for _, e := range r.entries {
		p.saw(e)
	}
	p.Finished.WriteString(p.Lasting(r.ends()))
	return p
}

// clashed are the requests whose orders were computed from a stock that another order had changed.
func (r *record) clashed() map[string]bool {
	clashed := map[string]bool{}
	current := r.scene.Initial
	for _, e := range r.entries {
		if e.Kind != Ordered {
			continue
		}
		if *e.Read != current {
			clashed[e.Request] = true
		}
		current = *e.Stock
	}
	return clashed
}

// ends is when the last entry was, in milliseconds.
func (r *record) ends() float64 {
	if len(r.entries) == 0 {
		return 0
	}
	return r.entries[len(r.entries)-1].AtMS
}

// write writes a JSON line for each entry.
func (r *record) write(w io.Writer) error {
	out := json.NewEncoder(w)
	for _, e := range r.entries {
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// keep writes the record of a run into a folder: first a line with the run itself, then the entries.
func (r *record) keep(folder string, of run) error {
	name := fmt.Sprintf("%03d-%s-%s-%d.jsonl", of.ID, of.Strategy, of.Scenario, of.Seed)
	file, err := wholefile.Create(filepath.Join(folder, strings.ReplaceAll(name, "/", "-")))
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := json.NewEncoder(file).Encode(of); err != nil {
		return err
	}
	if err := r.write(file); err != nil {
		return err
	}
	return file.Commit()
}
