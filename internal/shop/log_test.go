package shop

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFloodIsSampled logs a thousand records of one message in two seconds, and one of another.
func TestAFloodIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written logBuffer
		dropped := 0
		log := newLog(slog.New(slog.NewJSONHandler(&written, nil)), func(slog.Level) { dropped++ }).With("shop", "a")
		const records = 1000
		for i := range records {
			log.Warn("request failed")
			if i == records/2 {
				log.Error("request failed", "rare", true)
			}
			time.Sleep(2 * time.Second / records)
		}
		kept := strings.Count(written.String(), `"level":"WARN"`)
		if want := logBurst + 2*logRate; kept < want-1 || kept > want+1 {
			t.Errorf("%d of %d records were written, want %d", kept, records, want)
		}
		if !strings.Contains(written.String(), `"rare":true`) {
			t.Error("a rare error was left out with the flood of warnings")
		}
		if dropped != records-kept {
			t.Errorf("%d records were counted as left out, %d were", dropped, records-kept)
		}
		counted := 0
		time.Sleep(time.Second)
		log.Warn("request failed")
		for line := range strings.Lines(written.String()) {
			var record struct{ Dropped int }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			counted += record.Dropped
		}
		if counted != dropped {
			t.Errorf("the log says that %d records were left out, %d were", counted, dropped)
		}
	})
}
