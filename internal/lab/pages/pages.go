// Package pages renders the Markdown pages of this repository, for the live page and for the static site.
package pages

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	mark "github.com/yuin/goldmark/renderer/html"

	"stocklock/internal/lab/verdict"
)

// Style is the style sheet of a page, beside [Base].
//
//go:embed style.css
var Style []byte

//go:embed base.css
var base []byte

// Base is the style sheet that the live page and these pages share: colours, verdicts, tables and drawings.
func Base() []byte { return append([]byte(verdict.Style()), base...) }

// A Lead gives the address of a file of the repository and a heading of it, as seen from the page that is
// rendered. What has no address is no link, and no picture.
type Lead func(file, heading string) string

// Find is the page that is meant by a path in files: that of a folder is its README.md.
func Find(files fs.FS, name string) (string, bool) {
	if info, err := fs.Stat(files, name); err == nil && info.IsDir() {
		name = path.Join(name, "README.md")
	}
	_, err := fs.Stat(files, name)
	return name, err == nil
}

// File is a file of files as HTML: a page, or code as it stands.
func File(files fs.FS, name string, lead Lead) (string, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return "", err
	}
	if path.Ext(name) == ".md" {
		return Markdown(name, text, lead)
	}
	return fmt.Sprintf("<h1>%s</h1><pre class=\"replay\" tabindex=\"0\">%s</pre>", html.EscapeString(name), html.EscapeString(string(text))), nil
}

// markdown keeps the HTML of the pages, such as the answers that are folded: all of them are this repository's.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(mark.WithUnsafe()))

// Markdown is Markdown of a page as HTML.
func Markdown(page string, text []byte, lead Lead) (string, error) {
	var body bytes.Buffer
	if err := markdown.Convert(text, &body, parser.WithContext(parser.NewContext(parser.WithIDs(anchors{})))); err != nil {
		return "", err
	}
	linked := reference.ReplaceAllStringFunc(body.String(), func(tag string) string {
		parts := reference.FindStringSubmatch(tag) // to the address, the address, and the rest
		target, err := url.Parse(html.UnescapeString(parts[2]))
		if err != nil || target.Scheme != "" {
			return tag
		}
		file := page
		if target.Path != "" {
			file = path.Join(path.Dir(page), target.Path)
		}
		switch address := lead(file, target.Fragment); {
		case address != "":
			return parts[1] + html.EscapeString(address) + parts[3]
		case strings.HasPrefix(tag, "<a"):
			return "<a>"
		}
		return ""
	})
	// A table can be wider than the screen.
	linked = strings.ReplaceAll(linked, "<table>", `<div class="scroll" tabindex="0" role="group" aria-label="table"><table>`)
	linked = strings.ReplaceAll(linked, "<th></th>", "<td></td>")
	linked = strings.ReplaceAll(linked, "<pre>", `<pre tabindex="0">`)
	return strings.ReplaceAll(linked, "</table>", "</table></div>"), nil
}

var reference = regexp.MustCompile(`(<(?:a href|img src|source srcset)=")([^"]*)("[^>]*>)`)

// Anchor is the anchor that GitHub gives a heading.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// anchors are those of a page. Goldmark's own lose every Chinese character.
type anchors map[string]bool

// Generate implements [parser.IDs].
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	name := Anchor(string(heading))
	free := name
	for n := 1; a[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	a[free] = true
	return []byte(free)
}

// Put implements [parser.IDs].
func (a anchors) Put(name []byte) { a[string(name)] = true }

// Language is that of a page, by its name.
func Language(page string) string {
	if strings.HasSuffix(page, ".zh-CN.md") {
		return "zh-CN"
	}
	return "en"
}

// Document is a whole page. Its style sheets are base.css and docs.css in the folder styles.
func Document(page, styles, body string) string {
	return fmt.Sprintf(frame, Language(page), html.EscapeString(path.Base(page)), styles, styles, body)
}

const frame = `<!DOCTYPE html>
<html lang="%s"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>stocklock: %s</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="%sbase.css"><link rel="stylesheet" href="%sdocs.css"></head>
<body>%s</body></html>
`
