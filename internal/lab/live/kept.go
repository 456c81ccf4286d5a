package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/lab/words"
)

// The runs of cells that are kept in a folder, for a page that starts again: so many files, of so many bytes together.
const (
	keptRuns  = 50
	keptBytes = 200 << 20
)

// keptRun is a file of a run. Nothing in it was typed by a visitor: predictions and votes are not kept.
type keptRun struct {
	Result  json.RawMessage `json:"result"` // a report of one cell
	Shops   int             `json:"shops,omitempty"`
	Told    []words.Text    `json:"told,omitempty"`
	Scene   scene           `json:"scene"`
	Entries []Entry         `json:"entries"` // null where there is no record
}

// keeper keeps runs in a folder. The zero value keeps none.
type keeper struct {
	folder string
	last   int // the number of the newest file
}

// files are those of the folder, the oldest first.
func (k *keeper) files() ([]string, error) {
	files, err := fs.Glob(os.DirFS(k.folder), "run-*.json")
	for i, name := range files {
		files[i] = filepath.Join(k.folder, name)
	}
	return files, err
}

// open makes the folder, and returns the runs that it has. An error says what of them cannot be shown, or that none can be
// kept.
func (k *keeper) open() (runs []*run, err error) {
	files, err := k.files()
	if wrong := wholefile.Check(filepath.Join(k.folder, "run-000000.json")); wrong != nil {
		k.folder, err = "", errors.Join(err, wrong)
	}
	for _, path := range files {
		r, wrong := readRun(path)
		if _, known := fmt.Sscanf(filepath.Base(path), "run-%d.json", &k.last); wrong == nil {
			wrong = known
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, wrong))
			continue
		}
		runs = append(runs, r)
	}
	return runs, err
}

// readRun reads a file of a run.
func readRun(path string) (*run, error) {
	content, err := os.ReadFile(path)
	var kept keptRun
	if err == nil {
		err = json.Unmarshal(content, &kept)
	}
	if err != nil {
		return nil, err
	}
	of, err := report.Decode(kept.Result)
	if err != nil || len(of.Cells) != 1 {
		return nil, errors.Join(err, errors.New("it is no run"))
	}
	for _, e := range kept.Entries {
		if ordered, looked := e.Kind == Ordered, e.Kind == Looked; ordered && (e.Stock == nil || e.Read == nil) || looked && (e.Stock == nil || e.Sold == nil) {
			return nil, fmt.Errorf("an entry at %g ms lacks its numbers", e.AtMS)
		}
	}
	kept.Scene.Rows = min(max(kept.Scene.Rows, 1), mostRows)
	c := of.Cells[0]
	r := &run{cellName: cellName{c.Strategy, c.Scenario}, Seed: c.Seed, Shops: kept.Shops, told: kept.Told}
	if r.conclude(c); kept.Entries != nil {
		r.record = &record{kept.Scene, kept.Entries}
	}
	return r, nil
}

// keep writes a run, and removes the oldest files that are too many.
func (k *keeper) keep(r *run) error {
	if k.folder == "" {
		return nil
	}
	of := report.Report{Version: report.Version, Environment: report.Environment{Time: time.Now().Format(time.RFC3339)}, Cells: []trial.Result{*r.result}}
	result, err := json.Marshal(of)
	if err != nil {
		return err
	}
	kept := keptRun{Result: result, Shops: r.Shops, Told: r.told}
	if r.record != nil {
		kept.Scene, kept.Entries = r.record.scene, r.record.entries
	}
	path := ""
	for taken := error(nil); taken == nil; _, taken = os.Stat(path) { // by another page that keeps its runs here
		k.last++
		path = filepath.Join(k.folder, fmt.Sprintf("run-%06d.json", k.last))
	}
	if err := wholefile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(kept) }); err != nil {
		return err
	}
	return k.trim(keptRuns, keptBytes)
}

// trim removes the oldest files, until there are so many at most, of so many bytes.
func (k *keeper) trim(most int, bytes int64) error {
	files, err := k.files()
	for i := len(files) - 1; i >= 0; i-- { // from the newest on
		info, wrong := os.Stat(files[i])
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		if bytes -= info.Size(); len(files)-i > most || bytes < 0 {
			if gone := os.Remove(files[i]); !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}
