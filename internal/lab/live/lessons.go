package live

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"stocklock"
	"stocklock/internal/lab/course"
	"stocklock/internal/lab/pages"
)

// lessonInfo is a lesson as the page shows it.
type lessonInfo struct {
	Number int        `json:"number"`
	Title  string     `json:"title"`
	Steps  []stepInfo `json:"steps"`
}

type stepInfo struct {
	Kind    string     `json:"kind"`
	Seconds int        `json:"seconds"` // that reading it takes
	Parts   []partInfo `json:"parts"`
}

// partInfo is a text, or a command.
type partInfo struct {
	HTML   string         `json:"html,omitempty"`
	Line   string         `json:"line,omitempty"`
	Output string         `json:"output,omitempty"` // what it printed once
	Action *course.Action `json:"action,omitempty"` // nil for a command that only a terminal runs
}

// courseInfo is the course in one language.
type courseInfo struct {
	Plan    string       `json:"plan"` // the page with the plan, as HTML
	Lessons []lessonInfo `json:"lessons"`
}

// longestOutput is of how many lines of an output more than a glance is taken, a second and a half for each.
const longestOutput = 40

const courseFolder = "docs/course"

// courses are the course as the page gets it, by the suffix of its pages.
var courses = map[string]func() asset{
	".md":       sync.OnceValue(func() asset { return readCourse(".md") }),
	".zh-CN.md": sync.OnceValue(func() asset { return readCourse(".zh-CN.md") }),
}

func serveCourse(w http.ResponseWriter, r *http.Request) {
	suffix := ".md"
	if r.URL.Query().Get("lang") == "zh" {
		suffix = ".zh-CN.md"
	}
	courses[suffix]().ServeHTTP(w, r)
}

// readCourse panics over what is embedded and cannot be read: a test reads it, too.
func readCourse(suffix string) asset {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	folder, err := fs.Sub(stocklock.Pages, courseFolder)
	must(err)
	lessons, err := course.Lessons(folder, suffix)
	must(err)
	plan, err := fs.ReadFile(folder, "README"+suffix)
	must(err)
	var c courseInfo
	c.Plan, err = pages.Markdown(courseFolder+"/README"+suffix, plan, lessonOf)
	must(err)
	for _, l := range lessons {
		info := lessonInfo{Number: l.Number, Title: l.Title}
		for _, s := range l.Steps {
			step := stepInfo{Kind: s.Kind}
			for _, p := range s.Parts {
				if p.Command != nil {
					step.Parts = append(step.Parts, partInfo{Line: p.Command.Line(), Output: p.Command.Output(), Action: p.Command.Action()})
					step.Seconds += min(strings.Count(p.Command.Output(), "\n"), longestOutput) * 3 / 2
					continue
				}
				text, err := pages.Markdown(path.Join(courseFolder, l.File), []byte(p.Text), lessonOf)
				must(err)
				step.Parts = append(step.Parts, partInfo{HTML: text})
				step.Seconds += reading(p.Text)
			}
			info.Steps = append(info.Steps, step)
		}
		c.Lessons = append(c.Lessons, info)
	}
	body, err := json.Marshal(c)
	must(err)
	return newAsset("course.json", body)
}

var lessonPage = regexp.MustCompile(`^` + courseFolder + `/(?:(\d+)-|README)[^/]*\.md$`)

// lessonOf is the address of a page for links of lessons: lessons are views of the page.
func lessonOf(page, heading string) string {
	found, _ := pages.Find(stocklock.Pages, page)
	if m := lessonPage.FindStringSubmatch(found); m != nil {
		return strings.TrimSuffix("#/lessons/"+m[1], "/")
	}
	return pageOf(page, heading)
}

// reading is how many seconds reading a text takes at 150 English words or 250 Chinese characters a minute,
// as technical texts are read.
func reading(text string) int {
	characters := 0
	for _, r := range text {
		if unicode.Is(unicode.Han, r) {
			characters++
		}
	}
	words := len(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Han, r) }))
	return words*60/150 + characters*60/250
}
