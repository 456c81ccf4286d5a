package service

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/load"
)

const small = `start:
  command: [shop, "{port}"]
buy: {path: /buy}
stock:
  set: SELECT 1
  left: SELECT 1
  orders: SELECT 1
`

func TestTheExampleIsADescription(t *testing.T) {
	f, err := parse("service.yaml", t.TempDir(), Example)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Fresh() || f.Excludes() || f.Start.Processes != 2 || f.Name != "my shop" {
		t.Errorf("%+v", f)
	}
	if _, err := parse("service.yaml", t.TempDir(), []byte(small)); err != nil {
		t.Errorf("the smallest one: %v", err)
	}
}

// TestTheExampleNamesEveryField, each where it can be.
func TestTheExampleNamesEveryField(t *testing.T) {
	paragraphs := strings.Split(string(Example), "\n\n")
	for _, of := range []struct {
		fields any
		under  string // the paragraphs, by their first keys
	}{{File{}, `\w+`}, {Program{}, "start"}, {Request{}, "ready|buy|stock"}, {Answer{}, "answers"}, {Stock{}, "stock"}} {
		under, text := regexp.MustCompile(`(?m)^(# )?(`+of.under+`): `+"|^(# )?("+of.under+"):$"), ""
		for _, paragraph := range paragraphs {
			if under.MatchString(paragraph) {
				text += paragraph
			}
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of.fields)) {
			if tag := field.Tag.Get("yaml"); tag != "" && !regexp.MustCompile(`\b`+tag+`\b`).MatchString(text) {
				t.Errorf("example.yaml has no %s of %T", tag, of.fields)
			}
		}
	}
}

// TestMistakes: each mistake is said with its line and with what would be right.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		what, from, to string
		line           int
		says           string
	}{
		{"an unknown field", "buy:", "bay: 1\nbuy:", 3, `unknown field "bay"`},
		{"no YAML", "buy: {", "buy: {{", 3, ""},
		{"a number that is none", "buy:", "answers:\n  sold: {status: [ok]}\nbuy:", 4, "int"},
		{"nothing to start", "start:\n  command: [shop, \"{port}\"]\n", "", 0, "nothing says how the service starts"},
		{"a command and a url", "buy:", "url: http://127.0.0.1:1\nbuy:", 3, "want one of them"},
		{"no port", `"{port}"`, `"8080"`, 2, "{port}"},
		{"too many processes", "buy:", "  processes: 99\nbuy:", 3, "want 1 to 8"},
		{"too long a start", "buy:", "  within: 5m\nbuy:", 3, "want up to 1m0s"},
		{"a folder that is not there", "buy:", "  dir: nowhere\nbuy:", 3, "is no folder"},
		{"another path", "/buy", "http://elsewhere/buy", 3, "begins with /"},
		{"no purchase", "buy: {path: /buy}\n", "", 0, "nothing says how to buy"},
		{"a placeholder that is none", "{path: /buy}", "\n  path: /buy/{thing}", 4, "{thing}"},
		{"a customer where stock is set", "  set: SELECT 1\n", "  set: INSERT INTO customers VALUES ('{customer}')\n", 5, "want one of {item}, {stock}"},
		{"an answer that is none", "buy:", "answers:\n  sould: {status: [200]}\nbuy:", 4, "want sold, sold_out, busy, accepted or unknown"},
		{"an answer that says nothing", "buy:", "answers:\n  sold: {}\nbuy:", 4, "neither a status nor a field"},
		{"two answers with one status", "buy:", "answers:\n  sold_out: {status: [410, 409]}\n  busy: {status: [409]}\nbuy:", 4, "both busy and sold_out are answered with 409"},
		{"an acceptance without an outcome", "buy:", "answers:\n  accepted: {status: [202]}\nbuy:", 4, "want outcome with a path"},
		{"stock in Redis and in SQL", "  left: SELECT 1\n", "  left: SELECT 1\n  left_redis: GET stock\n", 7, "want one of them"},
		{"no count", "  left: SELECT 1\n", "", 5, "stock has no left"},
		{"two counts", "  left: SELECT 1\n", "  left: SELECT 1\n  left_request: {path: /left, value: n}\n", 6, "want one of them"},
		{"a request without a value", "  left: SELECT 1\n", "  left_request: {path: /left}\n", 6, "the request has no value"},
		{"a script's step that has no name", "buy:", "scripts: {ab12: Take It}\nbuy:", 3, "no name of a step"},
		{"a pattern that is none", "buy:", "background: [\"(\"]\nbuy:", 3, "no regular expression"},
		{"a time that is none", "buy:", "settle: soon\nbuy:", 0, "want one such as 500ms"},
		{"tables twice", "buy:", "tables: x\ntables_file: y\nbuy:", 4, "want one of them"},
		{"a file that is not there", "buy:", "tables_file: nowhere.sql\nbuy:", 3, "nowhere.sql"},
	} {
		text := strings.Replace(small, tt.from, tt.to, 1)
		_, err := parse("service.yaml", t.TempDir(), []byte(text))
		var m *Mistake
		if !errors.As(err, &m) {
			t.Errorf("%s: %v: want a mistake", tt.what, err)
			continue
		}
		if m.Line != tt.line || !strings.Contains(m.What, tt.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q at line %d: want %q at line %d, in one line", tt.what, err, m.Line, tt.says, tt.line)
		}
	}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err != nil {
		t.Error(err)
	}
}

// TestTheFirstMistakeIsTold, the same one each time.
func TestTheFirstMistakeIsTold(t *testing.T) {
	for text, says := range map[string]string{
		strings.Replace(small, "buy: {path: /buy}", "ready: {path: health}", 1):                            "nothing says how to buy",
		small + "answers:\n  busy: {}\n  sold: {}\n  unknown: {}\n":                                        "busy has neither",
		small + "scripts: {a: A, b: B, c: C}\n":                                                            `"A" is no name`,
		strings.Replace(small, "{path: /buy}", `{path: /buy, headers: {A: "{a}", B: "{b}", C: "{c}"}}`, 1): "{a}",
		strings.Replace(small, "buy:", "  env: {A: \"{a}\", B: \"{b}\", C: \"{c}\"}\nbuy:", 1):             "{a}",
	} {
		for range 20 {
			if _, err := parse("service.yaml", t.TempDir(), []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v: want %s", err, says)
				break
			}
		}
	}
}

func TestASemicolonInQuotesEndsNoStatement(t *testing.T) {
	for text, want := range map[string][]string{
		"DELETE FROM a; UPDATE b SET c = 1;":            {"DELETE FROM a", "UPDATE b SET c = 1"},
		`UPDATE a SET b = 'c;d\';', e = "f;";; DO 1`:    {`UPDATE a SET b = 'c;d\';', e = "f;"`, "DO 1"},
		"-- it's there; always\nDO 1; -- isn't\nDO 'x'": {"-- it's there; always\nDO 1", "-- isn't\nDO 'x'"},
		"/* it's; */ DO 1; DO 'x'":                      {"/* it's; */ DO 1", "DO 'x'"},
		"DO 'a; DO 1":                                   {"DO 'a", "DO 1"},
	} {
		if got := statements(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestADefaultGivesWay: a status that the file names is no default of another answer, however often it is read.
func TestADefaultGivesWay(t *testing.T) {
	f, err := parse("service.yaml", t.TempDir(), []byte(small+"answers:\n  busy: {status: [409]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if got := [2]load.Outcome{f.outcome(409, nil), f.outcome(410, nil)}; got != [2]load.Outcome{load.Busy, load.SoldOut} {
			t.Fatalf("409 and 410 read as %s", got)
		}
	}
}

func TestAnswersAreRead(t *testing.T) {
	f, err := parse("service.yaml", t.TempDir(), []byte(small+"answers:\n  sold_out: {status: [400], field: error.code, value: gone}\n  busy: {status: [400], field: error.code, value: later}\n  unknown: {status: [503], field: error.code}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status int
		body   string
		want   load.Outcome
	}{
		{201, "", load.Sold},
		{400, `{"error": {"code": "gone"}}`, load.SoldOut},
		{400, `{"error": {"code": "later"}}`, load.Busy},
		{400, `{"error": {"code": "wrong"}}`, load.Failed},
		{400, `gone`, load.Failed},
		{500, `{"error": {"code": "gone"}}`, load.Failed},
		{503, `{"error": {"code": "gone"}}`, load.Unknown},
		{503, ``, load.Failed}, // busy is another here
	} {
		if got := f.outcome(tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%d %s: %s, want %s", tt.status, tt.body, got, tt.want)
		}
	}
	if got := fields([]byte(`{"orders": [{"by": "a"}, {"by": 7}, {}]}`), "orders.by"); len(got) != 2 || got[0] != "a" || got[1] != "7" {
		t.Errorf("fields: %q", got)
	}
}

func TestShapesLeaveOutWhatDiffers(t *testing.T) {
	for _, pair := range [][2]string{
		{"GET lock:17", "GET lock:18"},
		{"SET probe 6fbe84d1-140f-4d20-8739-4924af9d845b EX 5", "SET probe 00000000-140f-4d20-8739-4924af9d845b EX 6"},
		{"UPDATE t SET a = 'x' WHERE id = 1", "UPDATE t SET a = 'y' WHERE id = 2"},
	} {
		if Shape(pair[0]) != Shape(pair[1]) {
			t.Errorf("%q and %q have different shapes", Shape(pair[0]), Shape(pair[1]))
		}
	}
	for _, pair := range [][2]string{{"GET stock", "DEL stock"}, {"EVALSHA 149c5a8bf1 1 lock:1 2000", "EVALSHA 6a3d31570d 1 lock:1 2000"}} {
		if Shape(pair[0]) == Shape(pair[1]) {
			t.Errorf("%q and %q have one shape", pair[0], pair[1])
		}
	}
}

// TestAProgramIsBesideItsDescription, wherever it runs.
func TestAProgramIsBesideItsDescription(t *testing.T) {
	s := &Service{File: &File{dir: "/shop", Start: Program{Dir: "app"}}}
	for program, want := range map[string]string{"./migrate": "/shop/migrate", "bin/server": "/shop/bin/server", "/bin/sh": "/bin/sh", "python3": "python3"} {
		if got := s.filled([]string{program, "./x"}, nil); got[0] != want || got[1] != "./x" {
			t.Errorf("%s: %q, want %s", program, got, want)
		}
	}
}
