package shop

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"stocklock/internal/stock"
)

// readContract loads openapi.yaml and makes sure that it is valid.
var readContract = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(openapi3.NewLoader().Context)
})

var router = sync.OnceValues(func() (routers.Router, error) {
	doc, err := readContract()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// checkContract holds one answer to the contract. Every answer that a test gets passes
// through here.
func checkContract(t *testing.T, method, path string, header http.Header, got answer) {
	t.Helper()
	if got.status == http.StatusRequestHeaderFieldsTooLarge {
		return // by the server, before it came to a route
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %s: the header of the answer %d is %v, want no-store and nosniff", method, path, got.status, got.header)
	}
	find, err := router()
	if err != nil {
		t.Fatal(err)
	}
	described := method
	if method == http.MethodHead { // what GET answers, without the body
		described = http.MethodGet
	}
	request, err := http.NewRequestWithContext(t.Context(), described, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	if method != http.MethodHead && got.problem() == "" && strings.Contains(got.header.Get("Content-Type"), "problem") {
		t.Errorf("%s %s: the status of %d %s is not that of the problem", method, path, got.status, got.body)
	}
	route, params, err := find.FindRoute(request)
	if err != nil {
		checkUnroutable(t, method, path, got)
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route},
		Status:                 got.status,
		Header:                 got.header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: method == http.MethodHead},
	}
	input.SetBodyBytes([]byte(got.body))
	if err := openapi3filter.ValidateResponse(t.Context(), input); err != nil {
		t.Errorf("%s %s: the answer %d %s breaks the contract: %v", method, path, got.status, got.body, err)
	}
}

// checkUnroutable is for paths and methods that the contract does not have.
func checkUnroutable(t *testing.T, method, path string, got answer) {
	t.Helper()
	if p := got.problem(); p != "not-found" && p != "method-not-allowed" {
		t.Errorf("%s %s is not in the contract, but answered %d %s", method, path, got.status, got.body)
	}
}

func TestTheContractListsTheProblems(t *testing.T) {
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	var want []any
	for _, k := range problems {
		want = append(want, "/problems/"+k.Slug)
	}
	if got := doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum; !slices.Equal(got, want) {
		t.Errorf("openapi.yaml lists the types %v\nthe shop has %v", got, want)
	}
}

func TestTheContractHasTheBounds(t *testing.T) {
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct {
		schema, property string
		most             float64
	}{
		{"NewOrder", "quantity", maxQuantity},
		{"NewLine", "quantity", stock.MaxStock},
		{"NewItem", "stock", stock.MaxStock},
		{"Restock", "quantity", stock.MaxStock},
		{"Correction", "stock", stock.MaxStock},
	} {
		if got := doc.Components.Schemas[b.schema].Value.Properties[b.property].Value.Max; got == nil || *got != b.most {
			t.Errorf("openapi.yaml: the maximum of %s.%s is not %g", b.schema, b.property, b.most)
		}
	}
	if got := doc.Components.Schemas["NewBasket"].Value.Properties["lines"].Value.MaxItems; got == nil || *got != maxLines {
		t.Errorf("openapi.yaml: an order does not have at most %d lines", maxLines)
	}
}

func TestTheContractHasThePatterns(t *testing.T) {
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		doc.Components.Schemas["Name"].Value.Pattern:                     namePattern,
		doc.Components.Parameters["If-Match"].Value.Schema.Value.Pattern: tagPattern,
	} {
		if got != want {
			t.Errorf("openapi.yaml has the pattern %q\nthe shop has %q", got, want)
		}
	}
}

func TestTheContractListsTheRoutes(t *testing.T) {
	s := open(t, nil)
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	var documented, routed []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
			if method == http.MethodGet {
				documented = append(documented, "HEAD "+path)
			}
		}
	}
	for _, route := range s.staffEngine().Routes() {
		path := strings.NewReplacer(":item", "{item}", ":order", "{order}", ":slug", "{slug}", ":reservation", "{reservation}", ":reference", "{reference}").Replace(route.Path)
		routed = append(routed, route.Method+" "+path)
	}
	slices.Sort(documented)
	slices.Sort(routed)
	if !slices.Equal(documented, routed) {
		t.Errorf("openapi.yaml has %v\nthe shop has     %v", documented, routed)
	}
}

// TestThePublicContractHasTheOperationsOfCustomers compares it with the whole contract.
func TestThePublicContractHasTheOperationsOfCustomers(t *testing.T) {
	whole, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	text, err := publicContract()
	if err != nil {
		t.Fatal(err)
	}
	public, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := public.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, item := range whole.Paths.Map() {
		for method, operation := range item.Operations() {
			is := false
			if there := public.Paths.Value(path); there != nil && there.GetOperation(method) != nil {
				for _, response := range operation.Responses.Map() {
					if response.Value != nil {
						response.Value.Links = nil // some lead to operations of staff
					}
				}
				got, _ := there.GetOperation(method).MarshalJSON()
				want, _ := operation.MarshalJSON()
				if is = true; string(got) != string(want) {
					t.Errorf("%s %s is %s, want %s", method, path, got, want)
				}
			}
			if is == slices.ContainsFunc(operation.Tags, func(tag string) bool { return slices.Contains(staffTags, any(tag)) }) {
				t.Errorf("%s %s, with the tags %s: public %t", method, path, operation.Tags, is)
			}
		}
	}
}

func TestHEADIsGETWithoutTheBody(t *testing.T) {
	s := open(t, nil)
	item := s.item(2)
	order := s.buy(item, "Idempotency-Key", "key-of-some-customer-1").order(t)
	for _, path := range []string{
		"/livez", "/readyz", "/openapi.yaml", "/docs", "/problems/sold-out", "/problems/none", "/api/v1/items", fmt.Sprintf("/api/v1/items/%d", item.ID),
		"/api/v1/items/0", "/api/v1/orders/" + order.ID, "/api/v1/orders?idempotency_key=key-of-some-customer-1", "/api/v1/orders",
	} {
		get, head := s.get(path), s.do(t.Context(), http.MethodHead, path, "", nil)
		same := head.status == get.status
		for _, name := range []string{"Content-Type", "Location"} {
			same = same && head.header.Get(name) == get.header.Get(name)
		}
		if !same || head.body != "" {
			t.Errorf("HEAD %s: %d %v %q\nGET: %d %v", path, head.status, head.header, head.body, get.status, get.header)
		}
	}
	for path, allow := range map[string]string{"/livez": "GET, HEAD", ordersPath(item): "POST"} {
		if got := s.do(t.Context(), http.MethodDelete, path, "", nil); got.status != 405 || got.header.Get("Allow") != allow {
			t.Errorf("DELETE %s: %d, Allow %q, want %q", path, got.status, got.header.Get("Allow"), allow)
		}
	}
}

func TestTheDocumentationNeedsNoNetwork(t *testing.T) {
	s := open(t, nil)
	if want, err := publicContract(); err != nil || s.get("/openapi.yaml").body != string(want) {
		t.Errorf("/openapi.yaml is not the public contract: %v", err)
	}
	page := s.get("/docs")
	for _, wanted := range []string{"/api/v1/items/{item}/orders", "Idempotency-Key", `id="sold-out"`, `id="Order"`, "created_at"} {
		if !strings.Contains(page.body, wanted) {
			t.Errorf("/docs does not have %s", wanted)
		}
	}
	for _, unwanted := range []string{"correctStock", "<script", "http:", "https:", "src=", "ZgotmplZ"} {
		if strings.Contains(page.body, unwanted) {
			t.Errorf("/docs has %s", unwanted)
		}
	}
	for _, k := range problems {
		if got := s.get("/problems/" + k.Slug); got.status != http.StatusFound || got.header.Get("Location") != "/docs#"+k.Slug {
			t.Errorf("/problems/%s: %d to %q", k.Slug, got.status, got.header.Get("Location"))
		}
	}
	if got := s.get("/problems/none"); got.problem() != "not-found" {
		t.Errorf("/problems/none: %d %s", got.status, got.body)
	}
}
