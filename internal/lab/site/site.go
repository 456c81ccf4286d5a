// Package site makes a static site of a report and of the pages of this repository. It begins with the README
// and follows its links: to pages, to pictures, to code. The site needs no server and no network.
package site

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	parse "golang.org/x/net/html"

	"stocklock"
	"stocklock/internal/lab/live"
	"stocklock/internal/lab/pages"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/words"
)

type site struct {
	from  fs.FS
	files map[string][]byte // by their names in the site
	named map[string]bool   // by their names in the repository: made, or to be made
	ahead []string
	dead  []error
}

// Build returns the files of the site by their names. A link that leads to nothing is an error.
func Build(from fs.FS, matrix report.Report) (map[string][]byte, error) {
	var page bytes.Buffer
	if err := live.Save(matrix, &page); err != nil {
		return nil, err
	}
	s := site{from: from, named: map[string]bool{}, files: map[string][]byte{
		reportPage: page.Bytes(), "base.css": pages.Base(), "docs.css": pages.Style,
	}}
	s.lead("the site", "README.md")
	for len(s.ahead) > 0 {
		file := s.ahead[0]
		s.ahead = s.ahead[1:]
		content, err := s.page(file)
		if err != nil {
			return nil, err
		}
		s.files[Name(file)] = content
	}
	for _, old := range pages.OfEarlierVersions() {
		if now := pages.Moved(old); s.has(strings.Split(now, "#")[0]) {
			s.files[Name(old)] = leadOn(old, now)
		}
	}
	s.check()
	return s.files, errors.Join(s.dead...)
}

// leadOn is a page of an earlier version, which leads to where it is now.
func leadOn(old, now string) []byte {
	file, heading, _ := strings.Cut(now, "#")
	address := html.EscapeString(relative(old, Name(file)))
	if heading != "" {
		address += "#" + heading
	}
	return fmt.Appendf(nil, `<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=%[1]s"><a href="%[1]s">%[1]s</a>`, address)
}

// page is a file of the repository as the site has it.
func (s *site) page(file string) ([]byte, error) {
	if picture(file) {
		return fs.ReadFile(s.from, file)
	}
	body, err := pages.File(s.from, file, func(target, heading string) string {
		address := s.lead(file, target)
		if address != "" && heading != "" {
			address += "#" + heading
		}
		return address
	})
	styles := strings.Repeat("../", strings.Count(file, "/"))
	return []byte(pages.Document(file, styles, s.menu(file)+"<main>"+body+"</main>")), err
}

// lead is the address of a file for the links of another, and has its page made. A folder without a README
// has no address.
func (s *site) lead(page, file string) string {
	found, is := pages.Find(s.from, file)
	if _, err := fs.Stat(s.from, file); err != nil {
		s.dead = append(s.dead, fmt.Errorf("%s links to %s, which is not there", page, file))
	}
	if !is {
		return ""
	}
	if !s.named[found] {
		s.named[found] = true
		s.ahead = append(s.ahead, found)
	}
	return relative(page, Name(found))
}

// relative is the address of a file of the site for a page.
func relative(page, name string) string {
	to, err := filepath.Rel(path.Dir(page), name)
	if err != nil {
		panic(err) // both are below the same folder
	}
	return filepath.ToSlash(to)
}

func picture(file string) bool {
	return slices.Contains([]string{".webp", ".png", ".svg"}, path.Ext(file))
}

// Name is the name in the site of a file of the repository. What begins with a dot may not be published.
func Name(file string) string {
	if picture(file) {
		return file
	}
	name, isPage := strings.CutSuffix(strings.TrimPrefix(file, "."), ".md")
	if folder, base := path.Split(name); isPage {
		name = folder + strings.Replace(base, "README", "index", 1)
	}
	return name + ".html"
}

const reportPage = "report.html"

// menu has the links above each page, with their keys in the catalogue. The last one is the page in the other language.
var menuLinks = []struct{ key, file string }{{"menu.start", "README.md"}, {"menu.course", "docs/course/README.md"}, {"menu.report", reportPage},
	{"menu.mine", "docs/is-it-mine.md"}, {"menu.peers", "docs/peers.md"}, {"menu.names", "docs/mistakes/README.md"}, {"menu.other", ""}}

func (s *site) menu(file string) string {
	in, language, other := words.English, "en", "zh-CN"
	if pages.Language(file) != language {
		in, language, other = words.Chinese, other, language
	}
	var b strings.Builder
	b.WriteString("<nav>")
	for _, link := range menuLinks {
		if link.file == "" { // the start is there for a page that has no translation
			link.file = stocklock.InLanguage(file, other)
			if !s.has(link.file) {
				link.file = stocklock.InLanguage("README.md", other)
			}
		} else if twin := stocklock.InLanguage(link.file, language); s.has(twin) {
			link.file = twin
		}
		address, current := relative(file, link.file), ""
		if link.file != reportPage {
			address = s.lead(file, link.file)
		}
		if link.file == file {
			current = ` aria-current="page"`
		}
		fmt.Fprintf(&b, `<a href="%s"%s>%s</a> `, html.EscapeString(address), current, in.Say(words.Of(link.key)))
	}
	b.WriteString("</nav>")
	return b.String()
}

func (s *site) has(file string) bool {
	_, err := fs.Stat(s.from, file)
	return err == nil
}

// check finds links to what the site does not have, and what a page would load from elsewhere.
func (s *site) check() {
	ids, links := map[string]bool{}, map[string][]string{}
	for name, content := range s.files {
		if path.Ext(name) != ".html" {
			continue
		}
		ids[name] = true
		tokens := parse.NewTokenizer(bytes.NewReader(content))
		for tokens.Next() != parse.ErrorToken {
			token := tokens.Token()
			for _, a := range token.Attr {
				switch {
				case a.Key == "id":
					ids[name+"#"+a.Val] = true
				case a.Key == "href" || a.Key == "src" || a.Key == "srcset":
					target, err := url.Parse(a.Val)
					switch {
					case err != nil || target.Scheme == "" && target.Host != "" || target.Scheme != "" && token.Data != "a" && target.Scheme != "data":
						s.dead = append(s.dead, fmt.Errorf("%s: <%s> with %s", name, token.Data, a.Val))
					case target.Scheme == "":
						file := name
						if target.Path != "" {
							file = path.Join(path.Dir(name), target.Path)
						}
						if target.Fragment != "" {
							file += "#" + target.Fragment
						}
						links[name] = append(links[name], file)
					}
				}
			}
		}
	}
	for name, targets := range links {
		for _, target := range targets {
			if !ids[target] && s.files[target] == nil {
				s.dead = append(s.dead, fmt.Errorf("%s leads to %s, which is not there", name, target))
			}
		}
	}
}
