package live

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	mark "github.com/yuin/goldmark/renderer/html"

	"stocklock"
)

// markdown keeps the HTML of the pages, such as the answers that are folded: all of them are this repository's.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(mark.WithUnsafe()))

// rendered is Markdown of a page as HTML. Links inside the repository lead to what this server has; lead
// gives their addresses. What it has no page for is no link.
func rendered(page string, text []byte, lead func(page, heading string) string) (string, error) {
	var body bytes.Buffer
	if err := markdown.Convert(text, &body); err != nil {
		return "", err
	}
	linked := reference.ReplaceAllStringFunc(body.String(), func(link string) string {
		target, err := url.Parse(html.UnescapeString(reference.FindStringSubmatch(link)[1]))
		switch {
		case err != nil || target.Scheme != "":
			return link
		case target.Path == "":
			return `<a href="` + html.EscapeString(lead(page, target.Fragment)) + `"`
		}
		name := path.Join(path.Dir(page), target.Path)
		if info, err := fs.Stat(stocklock.Pages, name); err == nil && info.IsDir() {
			name += "/README.md"
		}
		if _, err := fs.Stat(stocklock.Pages, name); err != nil {
			return "<a"
		}
		return `<a href="` + html.EscapeString(lead(name, target.Fragment)) + `"`
	})
	// Pictures are in the repository alone; a table can be wider than the screen.
	linked = image.ReplaceAllString(linked, "")
	linked = strings.ReplaceAll(linked, "<table>", `<div class="scroll" tabindex="0" role="group" aria-label="table"><table>`)
	linked = strings.ReplaceAll(linked, "<th></th>", "<td></td>")
	linked = strings.ReplaceAll(linked, "<pre>", `<pre tabindex="0">`)
	return strings.ReplaceAll(linked, "</table>", "</table></div>"), nil
}

var (
	reference = regexp.MustCompile(`<a href="([^"]*)"`)
	image     = regexp.MustCompile(`<img [^>]*>`)
)

// pageOf is the address of a page, for links of other pages.
func pageOf(page, heading string) string {
	if heading != "" {
		heading = "#" + heading
	}
	return "/" + page + heading
}

// serveDocs shows a page of the documentation, and the code of a strategy. The addresses are the paths in
// the repository.
func serveDocs(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	status := http.StatusOK
	var body string
	text, err := stocklock.Pages.ReadFile(name)
	switch {
	case err != nil:
		status = http.StatusNotFound
		body = "<h1>" + html.EscapeString(name) + "</h1><p>This page is in the repository, and not here. 此页只在源码仓库中。</p><p><a href=\"/\">stocklock</a></p>"
	case path.Ext(name) == ".md":
		if body, err = rendered(name, text, pageOf); err != nil {
			refuse(w, http.StatusInternalServerError, "failed", err.Error())
			return
		}
	default:
		body = fmt.Sprintf("<h1>%s</h1><pre class=\"replay\">%s</pre>", html.EscapeString(name), html.EscapeString(string(text)))
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	language := "en"
	if strings.HasSuffix(name, ".zh-CN.md") {
		language = "zh-CN"
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, docsFrame, language, html.EscapeString(path.Base(name)), body)
}

const docsFrame = `<!DOCTYPE html>
<html lang="%s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>stocklock: %s</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/report.css"><link rel="stylesheet" href="/docs.css"></head>
<body><main>%s</main></body></html>
`
