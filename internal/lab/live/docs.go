package live

import (
	"html"
	"io"
	"net/http"
	"path"
	"strings"

	"stocklock"
	"stocklock/internal/lab/pages"
)

// pageOf is the address of a page, for links of other pages. Pictures are in the repository alone.
func pageOf(page, heading string) string {
	page, is := pages.Find(stocklock.Pages, page)
	switch {
	case !is:
		return ""
	case heading != "":
		return "/" + page + "#" + heading
	}
	return "/" + page
}

// serveDocs shows a page of the documentation, and the code of a strategy. The addresses are the paths in
// the repository. A page of an earlier version leads to where it is now.
func serveDocs(w http.ResponseWriter, r *http.Request) {
	asked := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if to, heading, _ := strings.Cut(pages.Moved(asked), "#"); to != "" {
		if address := pageOf(to, heading); address != "" {
			http.Redirect(w, r, address, http.StatusMovedPermanently)
			return
		}
	}
	name, is := pages.Find(stocklock.Pages, asked)
	status := http.StatusOK
	body, err := pages.File(stocklock.Pages, name, pageOf)
	switch {
	case !is:
		status = http.StatusNotFound
		body = "<h1>" + html.EscapeString(name) + "</h1><p>There is no such page here. It may be in the repository. 这里没有此页，它可能在源码仓库中。</p><p><a href=\"/\">stocklock</a></p>"
	case err != nil:
		refuse(w, http.StatusInternalServerError, "failed", err)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, pages.Document(name, "/", "<main>"+body+"</main>"))
}
