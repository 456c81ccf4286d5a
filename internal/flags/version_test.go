package flags

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestTheChangelogBeginsWithTheVersion(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindSubmatch(changelog)
	if newest == nil || string(newest[1]) != Version {
		t.Errorf("the newest version of CHANGELOG.md is %q, Version is %q", newest, Version)
	}
}

func TestRevision(t *testing.T) {
	for want, settings := range map[string][]debug.BuildSetting{
		"":                          {{Key: "-tags", Value: "lab"}},
		" (0123456789ab)":           {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}},
		" (0123456789ab, modified)": {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	} {
		if got := revision(settings); got != want {
			t.Errorf("revision(%v) = %q, want %q", settings, got, want)
		}
	}
}
