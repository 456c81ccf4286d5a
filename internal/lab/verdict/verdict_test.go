package verdict

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/words"
)

// TestEveryVerdictIsWhole: each has its entry, and its words in each language.
func TestEveryVerdictIsWhole(t *testing.T) {
	source, err := os.ReadFile("verdict.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^\t\w+ +Kind = "([\w'-]+)"`).FindAllSubmatch(source, -1)
	if len(named) != len(All) {
		t.Errorf("%d words and %d entries", len(named), len(All))
	}
	for _, word := range named {
		v := Of(Kind(word[1]))
		if said := v.Word(words.English); said != string(v.Kind) && v.Kind != Inapplicable {
			t.Errorf("%s is called %s", v.Kind, said)
		}
		if coloured := v.Kind != Skipped && v.Kind != Inapplicable; coloured != (v.Style != "") || coloured != (v.Terminal != nil) {
			t.Errorf("%s has a colour in one form only", v.Kind)
		}
		for _, l := range words.Languages {
			for _, kind := range []string{"verdict.", "short.", "legend.", "means."} {
				if l.Messages()[kind+string(v.Kind)] == "" {
					t.Errorf("%s has no %s in %s", v.Kind, kind, l)
				}
			}
			reason := v.Reason(Facts{Stock: 7, Sold: 5, Remaining: 2, Waiting: &Waiting{}})
			if said := l.Say(reason); v.Bad && said == "" || said == reason.Key && said != "" {
				t.Errorf("%s in %s is %q", v.Kind, l, said)
			}
			starves := v.Reason(Facts{Stock: 7, Sold: 5, Remaining: 2, Waiting: &Waiting{}, Starves: true})
			if said := l.Say(starves); v.Kind != Degraded && said != l.Say(reason) {
				t.Errorf("%s of a strategy that starves is %q", v.Kind, said)
			}
		}
	}
}

// whyInSchedules names the verdicts for what caused each in a schedule. It is no list of them.
const whyInSchedules = "internal/lab/schedule/cause.go"

// TestTheListIsHereAlone looks for files that name four of the five ways to fail. What a scenario demands names one each.
func TestTheListIsHereAlone(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	word := regexp.MustCompile(`\bverdict\.(Oversold|Lied|Left|Unbalanced|Stuck)\b|['".](oversold|lied|left|unbalanced|stuck)\b`)
	demand := regexp.MustCompile(`\b(Otherwise|Counted): verdict\.\w+`)
	found := false
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir() && slices.Contains([]string{".git", "out", "docs", "testdata", "verdict", "words"}, d.Name()):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".js", ".css", ".json", ".tmpl"}, filepath.Ext(name)), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names := map[string]bool{}
		for _, match := range word.FindAllSubmatch(demand.ReplaceAll(text, nil), -1) {
			names[strings.ToLower(string(match[1])+string(match[2]))] = true
		}
		if len(names) >= 4 && name == whyInSchedules {
			found = true
		} else if len(names) >= 4 {
			t.Errorf("%s lists verdicts %v: read them from verdict.All", name, names)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		t.Errorf("%s was not found: the test looks for lists in another form", whyInSchedules)
	}
}
