package scenario

import (
	"strings"
	"testing"
)

func TestANameThatLooksAlikeIsNamed(t *testing.T) {
	for misspelled, meant := range map[string]string{
		"pausee": "pause", "puase": "pause", "crsh": "crash", "late_release": "late-release", "failovre": "failover",
		"no": "", "sleep": "", "": "",
	} {
		_, err := ByName(misspelled)
		if suggested := `did you mean "` + meant + `"? want one of contention, `; err == nil ||
			strings.Contains(err.Error(), suggested) != (meant != "") || strings.Contains(err.Error(), "did you mean") != (meant != "") {
			t.Errorf("%q: %v, want %q", misspelled, err, meant)
		}
	}
}
