package site

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"stocklock/internal/lab/report"
)

// menu is what the menus of all pages lead to.
var menu = fstest.MapFS{
	"README.md":                     {Data: []byte("# stocklock\n\n## 用法\n\n[there](docs/mistakes) ![picture](docs/a.webp) <picture><source srcset=\"docs/still.webp\"></picture>")},
	"README.zh-CN.md":               {Data: []byte("[用法](README.md#用法)")},
	"docs/mistakes/README.md":       {Data: []byte("[up](../../README.md#stocklock) [code](../../.ci/run) [no page](..) [elsewhere](https://example.com)")},
	"docs/mistakes/README.zh-CN.md": {},
	"docs/a.webp":                   {Data: []byte("picture")},
	"docs/still.webp":               {Data: []byte("still")},
	"docs/course/README.md":         {},
	"docs/course/README.zh-CN.md":   {},
	"docs/is-it-mine.md":            {},
	"docs/is-it-mine.zh-CN.md":      {},
	"docs/peers.md":                 {},
	".ci/run":                       {Data: []byte("a < b")},
}

// TestLinksLeadIntoTheSite looks at the addresses of pages, of pictures and of code.
func TestLinksLeadIntoTheSite(t *testing.T) {
	files, err := Build(menu, report.Report{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"index.html":       {`lang="en"`, `<a href="docs/mistakes/index.html">there</a>`, `<img src="docs/a.webp"`, `<a href="report.html">`, `<a href="index.zh-CN.html">中文</a>`},
		"index.zh-CN.html": {`lang="zh-CN"`, `#用法"`, `<a href="index.html">English</a>`},
		"docs/mistakes/index.html": {`<a href="../../index.html#stocklock">`, `<a href="../../ci/run.html">code`, `<a href="index.zh-CN.html">中文</a>`, `"../../base.css"`,
			`<a href="https://example.com">`, `<a href="index.html" aria-current="page">`},
		"docs/peers.html": {`<a href="../index.zh-CN.html">中文</a>`},
		"ci/run.html":     {"a &lt; b"},
		"docs/a.webp":     {"picture"},
		"docs/still.webp": {"still"},
	} {
		for _, part := range want {
			if !strings.Contains(string(files[name]), part) {
				t.Errorf("%s has no %s:\n%s", name, part, files[name])
			}
		}
	}
}

// TestDeadLinksAreErrors: each of these links ends the making of the site.
func TestDeadLinksAreErrors(t *testing.T) {
	for link, want := range map[string]string{
		"[x](nothing.md)":                             "docs/peers.md links to docs/nothing.md, which is not there",
		"[x](#nothing)":                               "docs/peers.html leads to docs/peers.html#nothing, which is not there",
		"[x](mistakes/README.md#nothing)":             "docs/peers.html leads to docs/mistakes/index.html#nothing, which is not there",
		"![x](nothing.png)":                           "docs/peers.md links to docs/nothing.png, which is not there",
		`<source srcset="https://example.com/x.png">`: "<source> with https://example.com/x.png",
		"![x](https://example.com/x.png)":             "<img> with https://example.com/x.png",
		`<script src="//example.com/x.js"></script>`:  "<script> with //example.com/x.js",
	} {
		broken := maps.Clone(menu)
		broken["docs/peers.md"] = &fstest.MapFile{Data: []byte(link)}
		if _, err := Build(broken, report.Report{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", link, err, want)
		}
	}
}
