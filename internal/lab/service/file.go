package service

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
)

// Example is a commented description, as `loadtest try --init` writes it.
//
//go:embed example.yaml
var Example []byte

// File is what a description says of a service. Texts may have placeholders: see example.yaml.
type File struct {
	Name  string  `yaml:"name"`
	Start Program `yaml:"start"`
	URL   string  `yaml:"url"` // of a service that runs already, in the place of Start
	// Tables is SQL, and Migrate a command, that makes the service's tables. Tables runs first.
	Tables     string                  `yaml:"tables"`
	TablesFile string                  `yaml:"tables_file"` // relative to the description
	Migrate    []string                `yaml:"migrate"`
	Ready      Request                 `yaml:"ready"`
	Buy        Request                 `yaml:"buy"`
	Answers    map[load.Outcome]Answer `yaml:"answers"`
	// Outcome is asked for what became of a sale that was answered as accepted. Its Value names the field of that
	// answer that stands for {id}.
	Outcome Request `yaml:"outcome"`
	Stock   Stock   `yaml:"stock"`
	// Background has regular expressions of requests to Redis and MySQL that belong to no sale.
	Background []string `yaml:"background"`
	// Scripts names the steps by which Lua scripts are sent, by the scripts' SHA-1.
	Scripts map[string]string `yaml:"scripts"`
	// Settle is how long a process may be silent, with nothing under way, before a run of it decides
	// nothing. See [Service.Patience], too. The zero value is 5 s.
	Settle time.Duration `yaml:"settle"`

	dir, at    string // the folder, and the path as it was given
	tree       *ast.File
	background []*regexp.Regexp
	set        []string // the statements of Stock.Set
}

// Program is how processes of a service are started.
type Program struct {
	Command   []string          `yaml:"command"`   // the program and its arguments: no shell reads them
	Dir       string            `yaml:"dir"`       // where it runs, relative to the description
	Env       map[string]string `yaml:"env"`       // added to the environment
	Processes int               `yaml:"processes"` // how many are meant to run beside each other; 0 for 2
	Within    time.Duration     `yaml:"within"`    // the time in which one must be ready; 0 for 60 s, which is the most
}

// Request is a request of HTTP.
type Request struct {
	Method  string            `yaml:"method"`
	Path    string            `yaml:"path"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
	Status  int               `yaml:"status"` // that of ready; 0 for any below 400
	Value   string            `yaml:"value"`  // the field of the answer that counts, such as data.stock
}

// Answer says how an answer is recognized: by its status, and by a field of its JSON body.
type Answer struct {
	Status []int  `yaml:"status"`
	Field  string `yaml:"field"` // such as error.code
	Value  string `yaml:"value"`
}

// Stock says how the units of an item are set and counted: with SQL, with requests, or with commands of Redis.
type Stock struct {
	Set           string  `yaml:"set"`
	Left          string  `yaml:"left"`   // one number
	Orders        string  `yaml:"orders"` // one row for each order: the customer, and the quantity where that is not 1
	SetRequest    Request `yaml:"set_request"`
	LeftRequest   Request `yaml:"left_request"`
	OrdersRequest Request `yaml:"orders_request"`
	// A service that keeps its stock in Redis is set and counted there, with one command each.
	SetRedis  string `yaml:"set_redis"`
	LeftRedis string `yaml:"left_redis"`
	// MySQL is the DSN of the database that counts for a service that runs already. It has a password:
	// ${NAME} in it is taken from the environment.
	MySQL string `yaml:"mysql"`
}

// leftField is the field that counts the units.
const leftField = "stock.left"

// duration reads the form of [time.ParseDuration].
func duration(d *time.Duration, text []byte) (err error) {
	if *d, err = time.ParseDuration(strings.Trim(strings.TrimSpace(string(text)), `"'`)); err != nil {
		return fmt.Errorf("%q is no time: want one such as 500ms or 3s", bytes.TrimSpace(text))
	}
	return nil
}

// Mistake is something wrong in a description, at a line.
type Mistake struct {
	Path string
	Line int // 0 for the whole file
	What string
}

func (m *Mistake) Error() string {
	if m.Line == 0 {
		return fmt.Sprintf("%s: %s", m.Path, m.What)
	}
	return fmt.Sprintf("%s:%d: %s", m.Path, m.Line, m.What)
}

// restAnswers is how most services of REST answer.
var restAnswers = map[load.Outcome]Answer{load.Sold: {Status: []int{200, 201}}, load.SoldOut: {Status: []int{409, 410}}, load.Busy: {Status: []int{423, 429, 503}}}

const (
	defaultSettle    = 5 * time.Second
	startLimit       = 60 * time.Second
	defaultProcesses = 2
	maxProcesses     = 8
)

// Read reads a description. Its errors are of [Mistake], except for a file that cannot be read.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return parse(path, dir, text)
}

func parse(path, dir string, text []byte) (*File, error) {
	f := &File{dir: dir, at: path}
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict(), yaml.CustomUnmarshaler(duration)); err != nil {
		m := &Mistake{Path: path, What: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) {
			m.What = at.GetMessage()
			if at.GetToken() != nil {
				m.Line = at.GetToken().Position.Line
			}
		}
		return nil, m
	}
	var err error
	if f.tree, err = parser.ParseBytes(text, 0); err != nil {
		return nil, &Mistake{Path: path, What: err.Error()}
	}
	for _, check := range []func(*File) (field, what string){
		(*File).checkStart, (*File).checkTables, (*File).checkBuy, (*File).checkAnswers, (*File).checkStock, (*File).checkBackground, (*File).checkScripts, (*File).checkPlaces,
	} {
		if field, what := check(f); what != "" {
			return nil, f.mistake(field, "%s", what)
		}
	}
	f.defaults()
	return f, nil
}

// mistake is one at a field such as buy.path.
func (f *File) mistake(field, format string, args ...any) *Mistake {
	return &Mistake{f.at, lineOf(f.tree, field), fmt.Sprintf(format, args...)}
}

// lineOf is the line of a field such as buy.path, or of the nearest field around it. It is 0 where there is
// none.
func lineOf(tree *ast.File, field string) int {
	for field != "" {
		if path, err := yaml.PathString("$." + field); err == nil {
			if node, err := path.FilterFile(tree); err == nil && node != nil {
				line := node.GetToken().Position.Line
				if mapping, ok := node.(*ast.MappingNode); ok && len(mapping.Values) > 0 {
					line = mapping.Values[0].Key.GetToken().Position.Line
				}
				return line
			}
		}
		cut := strings.LastIndexByte(field, '.')
		if cut < 0 {
			return 0
		}
		field = field[:cut]
	}
	return 0
}

func (f *File) defaults() {
	f.Name = cmp.Or(f.Name, "the service")
	f.Settle = cmp.Or(f.Settle, defaultSettle)
	f.Start.Within = cmp.Or(f.Start.Within, startLimit)
	f.Start.Processes = cmp.Or(f.Start.Processes, defaultProcesses)
	f.Buy.Method = cmp.Or(f.Buy.Method, http.MethodPost)
	f.Stock.SetRequest.Method = cmp.Or(f.Stock.SetRequest.Method, http.MethodPut)
	for _, r := range []*Request{&f.Ready, &f.Stock.LeftRequest, &f.Stock.OrdersRequest, &f.Outcome} {
		r.Method = cmp.Or(r.Method, http.MethodGet)
	}
	var named []int // a default gives way to a status that the file names
	for _, answer := range f.Answers {
		if answer.Field == "" {
			named = append(named, answer.Status...)
		}
	}
	for word, answer := range restAnswers {
		if _, given := f.Answers[word]; !given {
			if f.Answers == nil {
				f.Answers = map[load.Outcome]Answer{}
			}
			f.Answers[word] = Answer{Status: slices.DeleteFunc(slices.Clone(answer.Status), func(status int) bool { return slices.Contains(named, status) })}
		}
	}
}

func (f *File) checkStart() (field, what string) {
	switch {
	case len(f.Start.Command) == 0 && f.URL == "":
		return "start", `nothing says how the service starts: want start with a command, such as [python3, shop.py], or url`
	case len(f.Start.Command) > 0 && f.URL != "":
		return "url", "the service has both a command and a url: want one of them"
	case f.Start.Processes < 0 || f.Start.Processes > maxProcesses:
		return "start.processes", fmt.Sprintf("processes is %d: want 1 to %d", f.Start.Processes, maxProcesses)
	case f.Start.Within < 0 || f.Start.Within > startLimit:
		return "start.within", fmt.Sprintf("within is %s: want up to %s", f.Start.Within, startLimit)
	case f.Settle < 0:
		return "settle", "settle is less than nothing"
	}
	if f.URL != "" {
		if u, err := url.Parse(f.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "url", fmt.Sprintf("%q is no address: want one such as http://127.0.0.1:8080", f.URL)
		}
	}
	if f.Start.Dir != "" {
		if info, err := os.Stat(f.path(f.Start.Dir)); err != nil || !info.IsDir() {
			return "start.dir", fmt.Sprintf("%s is no folder", f.path(f.Start.Dir))
		}
	}
	return "", ""
}

func (f *File) checkTables() (field, what string) {
	if f.Tables != "" && f.TablesFile != "" {
		return "tables_file", "there are both tables and tables_file: want one of them"
	}
	if f.TablesFile != "" {
		text, err := os.ReadFile(f.path(f.TablesFile))
		if err != nil {
			return "tables_file", err.Error()
		}
		f.Tables = string(text)
	}
	return "", ""
}

func (f *File) checkBuy() (field, what string) {
	for _, r := range []struct{ name, path string }{
		{"buy", f.Buy.Path}, {"ready", f.Ready.Path}, {"outcome", f.Outcome.Path},
		{"stock.set_request", f.Stock.SetRequest.Path}, {"stock.left_request", f.Stock.LeftRequest.Path}, {"stock.orders_request", f.Stock.OrdersRequest.Path},
	} {
		switch {
		case r.path == "" && r.name == "buy":
			return "buy", "nothing says how to buy: want buy with a path, such as /items/{item}/orders"
		case r.path != "" && !strings.HasPrefix(r.path, "/"):
			return r.name + ".path", fmt.Sprintf("path is %q: want one that begins with /, of the service itself", r.path)
		}
	}
	return "", ""
}

func (f *File) checkAnswers() (field, what string) {
	words := slices.Sorted(maps.Keys(f.Answers))
	for _, word := range words {
		a, at := f.Answers[word], "answers."+string(word)
		switch {
		case !slices.Contains(answerWords, word):
			return at, fmt.Sprintf("there is no answer %q: want sold, sold_out, busy, accepted or unknown", word)
		case len(a.Status) == 0 && a.Field == "":
			return at, string(word) + " has neither a status nor a field: want status: [409], or field: error and value: sold_out"
		case a.Field == "" && a.Value != "":
			return at + ".value", "value has no field that it is in: want field, too"
		case word == accepted && f.Outcome.Path == "":
			return at, "nothing says where the outcome of an accepted sale is asked for: want outcome with a path"
		}
		for _, other := range words {
			b := f.Answers[other]
			both := func(status int) bool { return slices.Contains(b.Status, status) }
			if i := slices.IndexFunc(a.Status, both); other != word && a.Field == "" && b.Field == "" && i >= 0 {
				return "answers." + string(max(word, other)), fmt.Sprintf("both %s and %s are answered with %d: want a field in one of them", min(word, other), max(word, other), a.Status[i])
			}
		}
	}
	return "", ""
}

func (f *File) checkStock() (field, what string) {
	for _, way := range []struct {
		field, sql, redis string
		request           Request
		needs             bool
	}{
		{"set", f.Stock.Set, f.Stock.SetRedis, f.Stock.SetRequest, false}, {"left", f.Stock.Left, f.Stock.LeftRedis, f.Stock.LeftRequest, true},
		{"orders", f.Stock.Orders, "", f.Stock.OrdersRequest, true},
	} {
		switch {
		case way.sql == "" && way.request.Path == "" && way.redis == "":
			return "stock." + way.field, fmt.Sprintf("stock has no %s: want SQL in %s, or a request in %s_request", way.field, way.field, way.field)
		case way.sql != "" && way.request.Path != "":
			return "stock." + way.field, fmt.Sprintf("there are both %s and %s_request: want one of them", way.field, way.field)
		case way.needs && way.redis != "" && way.sql+way.request.Path != "":
			return "stock." + way.field + "_redis", fmt.Sprintf("there are both %s_redis and another way: want one of them", way.field)
		case way.redis != "" && f.URL != "":
			return "stock." + way.field + "_redis", "the lab counts in the Redis that it starts, and this service runs already"
		case way.needs && way.request.Path != "" && way.request.Value == "":
			return "stock." + way.field + "_request", "the request has no value: want the field of the answer that counts, such as value: stock"
		case way.sql != "" && f.URL != "" && f.Stock.MySQL == "":
			return "stock." + way.field, "a service that runs already is counted with SQL only with stock.mysql, the DSN of its database"
		}
	}
	if f.Stock.MySQL != "" && f.URL == "" {
		return "stock.mysql", "the lab counts in the MySQL that it starts: mysql is for a service with a url"
	}
	f.set = statements(f.Stock.Set)
	return "", ""
}

// statements are those of a text, without what is empty. A semicolon in quotes, or in a comment, ends none.
func statements(text string) []string {
	var all []string
	for _, s := range statement.FindAllString(text, -1) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

var statement = regexp.MustCompile(`(?s)(?:/\*.*?\*/|(?:-- |#)[^\n]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|` + "`[^`]*`|[^;])+")

func (f *File) checkScripts() (field, what string) {
	for _, name := range slices.Sorted(maps.Values(f.Scripts)) {
		if !schedule.IsStepName(name) {
			return "scripts", fmt.Sprintf("%q is no name of a step: want lower-case letters, such as acquire", name)
		}
	}
	return "", ""
}

func (f *File) checkBackground() (field, what string) {
	for _, pattern := range f.Background {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return "background", fmt.Sprintf("%q is no regular expression: %v", pattern, err)
		}
		f.background = append(f.background, compiled)
	}
	return "", ""
}

// placeholder matches what is filled in. Braces of JSON and of Lua are none: no letter follows them at once.
var placeholder = regexp.MustCompile(`\{([a-z][a-z_.]*)\}`)

// What is filled in, for whom.
var (
	ofProcess = []string{"port", "process", "redis", "redis.host", "redis.port", "mysql", "mysql.host", "mysql.port", "mysql.user", "mysql.password", "mysql.database", "mysql.dsn"}
	ofSale    = []string{"item", "customer", "key", "quantity"}
	ofOutcome = append([]string{"id"}, ofSale...)
	ofCount   = []string{"item"}
	ofOffer   = []string{"item", "stock"}
)

func (f *File) checkPlaces() (field, what string) {
	type text struct {
		field, text string
		known       []string
	}
	stock := f.Stock
	all := []text{{"stock.set", stock.Set, ofOffer}, {"stock.set_redis", stock.SetRedis, ofOffer}, {leftField, stock.Left, ofCount}, {"stock.left_redis", stock.LeftRedis, ofCount}, {"stock.orders", stock.Orders, ofCount}}
	for _, r := range []struct {
		field string
		Request
		known []string
	}{{"buy", f.Buy, ofSale}, {"outcome", f.Outcome, ofOutcome}, {"stock.set_request", stock.SetRequest, ofOffer}, {"stock.left_request", stock.LeftRequest, ofCount}, {"stock.orders_request", stock.OrdersRequest, ofCount}} {
		all = append(all, text{r.field + ".path", r.Path, r.known}, text{r.field + ".body", r.Body, r.known})
		for _, header := range slices.Sorted(maps.Keys(r.Headers)) {
			all = append(all, text{r.field + ".headers." + header, r.Headers[header], r.known})
		}
	}
	ports := false
	for _, name := range slices.Sorted(maps.Keys(f.Start.Env)) {
		value := f.Start.Env[name]
		all, ports = append(all, text{"start.env." + name, value, ofProcess}), ports || strings.Contains(value, "{port}")
	}
	for _, word := range f.Start.Command {
		all, ports = append(all, text{"start.command", word, ofProcess}), ports || strings.Contains(word, "{port}")
	}
	for _, word := range f.Migrate {
		all = append(all, text{"migrate", word, ofProcess})
	}
	for _, t := range all {
		for _, found := range placeholder.FindAllStringSubmatch(t.text, -1) {
			if !slices.Contains(t.known, found[1]) {
				return t.field, fmt.Sprintf("nothing is known to fill in for {%s}: want one of {%s}", found[1], strings.Join(t.known, "}, {"))
			}
		}
	}
	if len(f.Start.Command) > 0 && !ports {
		return "start", "no part of command and env has {port}, the port on which the lab asks for the service"
	}
	return "", ""
}

// fill puts values in the place of placeholders.
func fill(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if v, ok := values[p[1:len(p)-1]]; ok {
			return v
		}
		return p
	})
}

// path is one of the description, which may be relative to it.
func (f *File) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

// Fresh says whether each run can sell another item.
func (f *File) Fresh() bool {
	return strings.Contains(f.Buy.Path+f.Buy.Body, "{item}")
}

// asks says whether the lab sends requests to the service that belong to no sale.
func (f *File) asks() bool {
	return f.Stock.SetRequest.Path+f.Stock.LeftRequest.Path+f.Stock.OrdersRequest.Path+f.Outcome.Path != ""
}

// Excludes says whether the service is one process, which can keep its own customers apart.
func (f *File) Excludes() bool { return f.URL != "" || f.Start.Processes == 1 }

// Host is the machine that a running service is on, empty for one that the lab starts.
func (f *File) Host() string {
	u, err := url.Parse(f.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// IsLoopback says whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
