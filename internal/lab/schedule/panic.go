package schedule

import (
	"os"
	"path/filepath"
	"regexp"
)

var panicked = regexp.MustCompile(`panic: [^\n\\"]*`)

// Panic returns what a shop of the stage said when it last panicked, empty where none did.
func (s *Stage) Panic() string {
	logs, _ := filepath.Glob(filepath.Join(s.rig.Dir(), "shop-*", "log")) // the pattern is right
	for _, log := range logs {
		if content, err := os.ReadFile(log); err == nil {
			if all := panicked.FindAll(content, -1); len(all) > 0 {
				return string(all[len(all)-1])
			}
		}
	}
	return ""
}
