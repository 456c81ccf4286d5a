package schedule

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Schema is what has to be known of tables, by their names, to say what a statement touches. A
// statement on a table that is not in it is unknown.
type Schema map[string]Table

// Table is one table of InnoDB without triggers.
type Table struct {
	Primary  []string // columns
	Unique   []string // all columns of unique keys, those of the primary key included, and those that foreign keys name
	Foreign  []string // all columns of foreign keys
	Parents  []string // tables that its foreign keys name
	Children []string // tables whose foreign keys name it
	// Born and Changed say that a column takes the time of an INSERT, or of an UPDATE.
	Born, Changed bool
}

// Statement is one of an open transaction.
type Statement struct {
	Text    string
	Matched bool // the server answered that it found rows
}

// prefixes of [Touch.Thing].
const (
	tableThing = "table "
	namedThing = "named lock " // of GET_LOCK
	keyThing   = "key "
)

// forms are the statements that are understood: of one table. A SELECT that takes no lock can have others in brackets.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^(?P<verb>COMMIT|ROLLBACK)$`),
	regexp.MustCompile(`(?i)^(?P<verb>SELECT|DO) (?P<function>(?:GET|RELEASE|IS_FREE|IS_USED)_LOCK)\((?P<named>'[\w.:-]+')(?:, ?(?P<wait>[\d.]+))?\)(?: FOR UPDATE)?$`),
	regexp.MustCompile(`(?i)^(?P<verb>SELECT) (?P<what>.+?)(?: FROM (?P<table>\w+)(?: WHERE (?P<where>.+?))?` + tail + `(?P<lock> FOR UPDATE| FOR SHARE| LOCK IN SHARE MODE)?(?P<asks> SKIP LOCKED| NOWAIT)?)?$`),
	regexp.MustCompile(`(?i)^(?P<verb>INSERT) (?:IGNORE )?INTO (?P<table>\w+) ?\([\w, ]+\) VALUES ?(?P<what>.+)$`),
	regexp.MustCompile(`(?i)^(?P<verb>UPDATE) (?P<table>\w+) SET (?P<what>.+?)(?: WHERE (?P<where>.+?))?` + tail + `$`),
	regexp.MustCompile(`(?i)^(?P<verb>DELETE) FROM (?P<table>\w+) WHERE (?P<where>.+?)` + tail + `$`),
}

const (
	tail       = `(?P<tail>(?: (?:GROUP|ORDER) BY [\w., ]+?)*(?: LIMIT \d+)?)`
	clockWords = `NOW|SYSDATE|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP|UTC_TIMESTAMP|UNIX_TIMESTAMP|CURDATE|CURTIME|CURRENT_DATE|CURRENT_TIME|UTC_DATE|UTC_TIME`
)

var (
	literal = regexp.MustCompile(`(?s)'(?:[^'\\]|''|\\.)*'`)
	simple  = regexp.MustCompile(`^'[\w.:-]*'$`)
	quoted  = regexp.MustCompile("`(\\w+)`")
	// What makes a statement unknown: outside of literals, in an expression, and before a bracket.
	odd      = regexp.MustCompile("[^ -~\\s]|[;@#\"'`\\\\|{}$]|--|/\\*")
	nested   = regexp.MustCompile(`(?i)\b(SELECT|FROM|JOIN|UNION|INTO|FOR|LOCK|WHERE|SET|PROCEDURE|DUPLICATE|TABLE)\b`)
	function = regexp.MustCompile(`(?i)_LOCK ?\(`)
	subquery = regexp.MustCompile(`(?i)\(SELECT `)
	called   = regexp.MustCompile(`([\w.]+) ?\(`)
	callable = regexp.MustCompile(`(?i)^(COALESCE|COUNT|SUM|MIN|MAX|AVG|LAST_INSERT_ID|IF|IFNULL|NULLIF|GREATEST|LEAST|ABS|MOD|CONCAT|LENGTH|LOWER|UPPER|ROUND|FLOOR|CEIL|` +
		`IN|EXISTS|AND|OR|NOT|BETWEEN|LIKE|THEN|ELSE|WHEN|DIV|INTERVAL|` + clockWords + `)$`)
	clocks = regexp.MustCompile(`(?i)\b(` + clockWords + `)\b`)

	brackets  = regexp.MustCompile(`\([^()]*\)`)
	noAnd     = regexp.MustCompile(`(?i)\b(OR|XOR|NOT|BETWEEN|CASE|HAVING|BY)\b`) // or an AND that joins no conditions of rows
	and       = regexp.MustCompile(`(?i) AND `)
	condition = regexp.MustCompile(`^(?:\w+\.)?(\w+) ?= ?('[\w-]+'|\d+)$`)
	assigned  = regexp.MustCompile(`(\w+) ?=`)
)

// parse returns the parts of a statement by their names in [forms], nil for one that is not understood.
func parse(text string) map[string]string {
	text = quoted.ReplaceAllString(literal.ReplaceAllStringFunc(text, func(l string) string {
		if simple.MatchString(l) {
			return l
		}
		return "'?'"
	}), "$1")
	if odd.MatchString(literal.ReplaceAllString(text, "")) {
		return nil
	}
	text, inner := subqueries(strings.Join(strings.Fields(text), " "))
	for _, form := range forms {
		found := form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		part := map[string]string{}
		for i, name := range form.SubexpNames() {
			part[name] = found[i]
		}
		expressions := part["what"] + "," + part["where"] + "," + part["tail"]
		if nested.MatchString(expressions) || slices.ContainsFunc(called.FindAllStringSubmatch(expressions, -1), func(c []string) bool { return !callable.MatchString(c[1]) }) {
			return nil
		}
		part["verb"] = strings.ToUpper(part["verb"])
		if part["inner"] = strings.Join(inner, ";"); part["inner"] != "" && (part["verb"] != "SELECT" || part["lock"] != "" || function.MatchString(part["inner"])) {
			return nil // which locks it takes is not known
		}
		return part
	}
	return nil
}

// subqueries takes each SELECT in brackets out of a statement whose literals have none. NULL stands for it: a value that
// no row is known by.
func subqueries(text string) (outer string, inner []string) {
	for {
		at := subquery.FindStringIndex(text)
		if at == nil {
			return outer + text, inner
		}
		depth := 1
		end := strings.IndexFunc(text[at[1]:], func(c rune) bool {
			switch c {
			case '(':
				depth++
			case ')':
				depth--
			}
			return depth == 0
		})
		if end < 0 {
			return outer + text, inner
		}
		outer += text[:at[0]] + "(NULL)"
		inner, text = append(inner, text[at[0]+1:at[1]+end]), text[at[1]+end+1:]
	}
}

// row is the row that conditions name by the whole primary key, empty where they name others, too. Its
// values equal others only if both are written alike: whole numbers, and texts of letters and digits.
func (t Table) row(where string) string {
	for brackets.MatchString(where) {
		where = brackets.ReplaceAllString(where, "")
	}
	if len(t.Primary) == 0 || noAnd.MatchString(where) {
		return ""
	}
	equal := map[string]string{}
	for _, c := range and.Split(where, -1) {
		if m := condition.FindStringSubmatch(c); m != nil {
			value := strings.ToUpper(strings.Trim(m[2], "'"))
			if strings.Trim(value, "0123456789") == "" {
				value = strings.TrimLeft(value, "0")
			}
			equal[strings.ToLower(m[1])] = value
		}
	}
	var parts []string
	for _, column := range t.Primary {
		value, ok := equal[strings.ToLower(column)]
		if !ok {
			return ""
		}
		parts = append(parts, column+"="+value)
	}
	return strings.Join(parts, ",")
}

// sets says whether assignments change one of these columns.
func sets(assignments string, columns []string) bool {
	return slices.ContainsFunc(assigned.FindAllStringSubmatch(assignments, -1), func(a []string) bool {
		return slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, a[1]) })
	})
}

// sqlTouches is what a statement touches. One that is not understood touches everything.
func (s Schema) sqlTouches(r Request) (all []Touch) {
	part := parse(r.Text)
	t, known := s[part["table"]]
	switch {
	case part["verb"] == "COMMIT" || part["verb"] == "ROLLBACK":
		return s.ends(r, part["verb"] == "COMMIT")
	case part == nil || part["table"] != "" && !known || !knownIsolation[r.Isolation]:
		return Everything(r.Server)
	}
	touch := func(thing, row string, does Does) { all = append(all, Touch{r.Server, thing, row, does}) }
	ask := func(parents []string) { // a check of foreign keys
		for _, name := range parents {
			touch(tableThing+name, "", Reads|Shares)
		}
	}
	table, writes := tableThing+part["table"], Writes
	if r.Tx {
		writes = 0
	}
	if clocks.MatchString(r.Text) || part["verb"] == "INSERT" && t.Born || part["verb"] == "UPDATE" && t.Changed {
		touch(Clock, "", Reads)
	}
	switch part["verb"] {
	case "DO", "SELECT":
		s.reads(r, part, touch)
		for _, inner := range strings.FieldsFunc(part["inner"], func(c rune) bool { return c == ';' }) {
			within := r
			within.Text = inner
			for _, t := range s.sqlTouches(within) {
				touch(t.Thing, "", t.Does) // its condition can name a row of the outer table
			}
		}
	case "INSERT":
		touch(table, "", Inserts|writes)
		ask(t.Parents)
	case "UPDATE", "DELETE":
		row, keyed := t.row(part["where"]), part["verb"] == "DELETE" || sets(part["what"], t.Unique)
		if keyed && len(t.Children) > 0 {
			return Everything(r.Server) // what its foreign keys do to other tables is not known
		}
		if keyed && part["verb"] == "UPDATE" {
			row = "" // the row gets another key
		}
		touch(table, row, Reads|Locks|writes)
		if sets(part["what"], t.Foreign) {
			ask(t.Parents)
		}
	}
	return all
}

// reads touches what a SELECT touches. The first plain one of a transaction reads everything as it is
// then, and those after it read the same: under REPEATABLE READ a snapshot is made by the first read.
func (s Schema) reads(r Request, part map[string]string, touch func(thing, row string, does Does)) {
	does := Reads
	if part["asks"] != "" {
		does |= Asks // and does not wait
	}
	snapshot := r.Tx && part["lock"] == "" && r.Isolation != readCommitted
	switch function := strings.ToUpper(part["function"]); {
	case function != "":
		does = Asks
		if wait, err := strconv.ParseFloat(part["wait"], 64); function == "GET_LOCK" && err == nil && wait > 0 && wait < 0.5 {
			does = everything // MySQL rounds it to no wait, and MariaDB does not
		} else if function == "GET_LOCK" && (err != nil || wait > 0) {
			does = Locks
		} else if function == "GET_LOCK" || function == "RELEASE_LOCK" {
			does |= Locks
		}
		touch(namedThing+strings.ToLower(strings.Trim(part["named"], "'")), "", does)
		return
	case part["table"] == "" || snapshot && slices.ContainsFunc(r.Earlier, s.makesSnapshot):
		return
	case snapshot:
		touch("", "", Reads)
		return
	case strings.EqualFold(part["lock"], " FOR UPDATE"):
		does |= Locks
	case part["lock"] != "":
		does |= Shares
	}
	touch(tableThing+part["table"], s[part["table"]].row(part["where"]), does)
}

// makesSnapshot says whether a statement has read in InnoDB without a lock. Where no row can meet its condition, MySQL has not
// asked, though an aggregate answers with a row.
func (s Schema) makesSnapshot(of Statement) bool {
	part := parse(of.Text)
	_, known := s[part["table"]]
	return of.Matched && known && part["verb"] == "SELECT" && part["lock"] == "" && part["inner"] == "" && !impossible.MatchString(part["where"])
}

var impossible = regexp.MustCompile(`(?i)^FALSE$|(?:^|[ (])(?:0 ?= ?1|1 ?= ?0|1 ?!= ?1)(?:[ )]|$)`) // as mappers write an empty list

// Serializable is a statement of a SERIALIZABLE transaction, as it would be sent under REPEATABLE READ: a
// plain SELECT takes shared locks.
func (r Request) Serializable() Request {
	if part := parse(r.Text); part["verb"] == "SELECT" && part["table"]+part["inner"] != "" && part["lock"] == "" {
		r.Text += " LOCK IN SHARE MODE"
	}
	r.Isolation = ""
	return r
}

// knownIsolation has the levels under which a plain read takes no lock, and reads what is committed.
var knownIsolation = map[string]bool{"": true, "Default": true, "Repeatable Read": true, readCommitted: true}

const readCommitted = "Read Committed"

// ends is what a COMMIT or ROLLBACK touches: the locks that it frees, and what it makes seen.
func (s Schema) ends(r Request, commits bool) []Touch {
	var all []Touch
	for _, e := range r.Earlier {
		part := parse(e.Text)
		wrote := commits && (part == nil || part["inner"] != "" || part["verb"] != "SELECT" && e.Matched)
		for _, t := range s.Locks([]Statement{e}) {
			if wrote && t.Does&(Locks|Inserts) != 0 {
				t.Does |= Writes
			}
			all = append(all, t)
		}
	}
	return all
}

// AsksForTime says whether a statement names the clock of MySQL.
func (r Request) AsksForTime() bool { return clocks.MatchString(r.Text) }
