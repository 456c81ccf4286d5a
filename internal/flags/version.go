package flags

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// Version is the version of the programs, and of a copy of the lock, which copy.sh reads from this
// line. CHANGELOG.md begins with it.
const Version = "0.7"

// VersionFlag is the flag --version, to be embedded in the settings of [Parse].
type VersionFlag struct {
	Version kong.VersionFlag `help:"Print the version, and end."`
}

// showVersion says what --version prints: the version, and the revision of the checkout where the
// build recorded one.
func showVersion() kong.Option {
	text := Version
	if info, ok := debug.ReadBuildInfo(); ok {
		text += revision(info.Settings)
	}
	return kong.Vars{"version": text}
}

func revision(settings []debug.BuildSetting) (text string) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			text = " (" + s.Value[:min(len(s.Value), 12)] + text
		case s.Key == "vcs.modified" && s.Value == "true":
			text += ", modified"
		}
	}
	if text != "" {
		text += ")"
	}
	return text
}
