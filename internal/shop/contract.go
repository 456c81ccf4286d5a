package shop

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/goccy/go-yaml"
)

// The HTTP contract. The tests check every answer against it.
var (
	//go:embed openapi.yaml
	openAPI []byte
	//go:embed docs.html
	docsTemplate string
)

// staffTags mark the operations of the listener of the staff.
var staffTags = []any{"staff", "payments"}

// publicContract is the contract without the operations of staff.
var publicContract = sync.OnceValues(func() ([]byte, error) {
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(openAPI, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	for i, part := range doc {
		if paths, ok := part.Value.(yaml.MapSlice); ok && part.Key == "paths" {
			doc[i].Value = withoutLinks(withoutStaff(paths))
		}
	}
	return yaml.Marshal(doc)
})

// withoutLinks leaves out the links of answers: some lead to operations of staff.
func withoutLinks(of yaml.MapSlice) yaml.MapSlice {
	of = slices.DeleteFunc(of, func(part yaml.MapItem) bool { return part.Key == "links" })
	for i, part := range of {
		if within, ok := part.Value.(yaml.MapSlice); ok {
			of[i].Value = withoutLinks(within)
		}
	}
	return of
}

func withoutStaff(paths yaml.MapSlice) (public yaml.MapSlice) {
	for _, path := range paths {
		methods := slices.DeleteFunc(path.Value.(yaml.MapSlice), func(method yaml.MapItem) bool {
			tags := method.Value.(yaml.MapSlice).ToMap()["tags"]
			return slices.ContainsFunc(tags.([]any), func(tag any) bool { return slices.Contains(staffTags, tag) })
		})
		if len(methods) > 0 {
			public = append(public, yaml.MapItem{Key: path.Key, Value: methods})
		}
	}
	return public
}

// documentation is a contract, as text and as a page that needs no script and no network. Both are
// made once.
type documentation struct{ contract, page func() ([]byte, error) }

func document(contract func() ([]byte, error)) documentation {
	return documentation{contract, sync.OnceValues(func() ([]byte, error) {
		text, err := contract()
		if err != nil {
			return nil, err
		}
		return docs(text)
	})}
}

var (
	publicDocs = document(publicContract)
	staffDocs  = document(func() ([]byte, error) { return openAPI, nil })
)

// answerWith returns the handler that answers with a contract or a page.
func (s *Shop) answerWith(text func() ([]byte, error), mediaType string) gin.HandlerFunc {
	return func(c *gin.Context) {
		body, err := text()
		if err != nil {
			s.fail(c, err)
			return
		}
		c.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		c.Data(http.StatusOK, mediaType, body)
	}
}

// getProblem serves the page of a problem's type.
func (s *Shop) getProblem(c *gin.Context) {
	for _, p := range problems {
		if p.Slug == c.Param("slug") {
			c.Redirect(http.StatusFound, "/docs#"+p.Slug)
			return
		}
	}
	s.fail(c, refusal{notFound, "there is no such problem"})
}

// docs renders the page of a contract.
func docs(text []byte) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	ref := func(of any) (name string) { // what it refers to, empty for nothing
		if fields, _ := of.(map[string]any); fields["$ref"] != nil {
			name = path.Base(fmt.Sprint(fields["$ref"]))
		}
		return name
	}
	page, err := template.New("docs").Funcs(template.FuncMap{
		"ref": ref,
		"resolve": func(kind string, of any) any {
			if name := ref(of); name != "" {
				return doc["components"].(map[string]any)[kind].(map[string]any)[name]
			}
			return of
		},
	}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		Contract map[string]any
		Problems []Problem
	}{doc, problems})
	return out.Bytes(), err
}
