package live

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"stocklock"
)

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// serveDocs shows a page of a strategy or a scenario, and the code of a strategy. The addresses are
// the paths in the repository, so that the pages' own links lead on.
func serveDocs(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	text, err := stocklock.Pages.ReadFile(name)
	if err != nil {
		refuse(w, http.StatusNotFound, "missing", "this page is in the repository, and not here: "+name)
		return
	}
	var body bytes.Buffer
	switch path.Ext(name) {
	case ".md":
		if err := markdown.Convert(text, &body); err != nil {
			refuse(w, http.StatusInternalServerError, "failed", err.Error())
			return
		}
	default:
		fmt.Fprintf(&body, "<h1>%s</h1><pre class=\"replay\">%s</pre>", html.EscapeString(name), html.EscapeString(string(text)))
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	language := "en"
	if strings.HasSuffix(name, ".zh-CN.md") {
		language = "zh-CN"
	}
	fmt.Fprintf(w, docsFrame, language, html.EscapeString(path.Base(name)), body.String())
}

const docsFrame = `<!DOCTYPE html>
<html lang="%s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>stocklock: %s</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/report.css"></head>
<body><main>%s</main></body></html>
`
