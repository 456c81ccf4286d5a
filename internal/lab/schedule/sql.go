package schedule

import (
	"regexp"
	"slices"
	"strings"

	"stocklock/internal/shop/labmode"
)

// Schema is what has to be known of tables, by their names, to say what a statement touches. A
// statement on a table that is not in it is unknown.
type Schema map[string]Table

// Table is one table of InnoDB without triggers.
type Table struct {
	Primary  []string // columns
	Unique   []string // all columns of unique keys, those of the primary key included
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

// Functions that a statement may call: all others make it unknown.
var (
	pureFunctions = words("COALESCE COUNT SUM MIN MAX AVG LAST_INSERT_ID IF IFNULL NULLIF GREATEST LEAST ABS MOD CONCAT LENGTH LOWER UPPER ROUND FLOOR CEIL")
	clocks        = words("NOW SYSDATE CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP UTC_TIMESTAMP UNIX_TIMESTAMP CURDATE CURTIME CURRENT_DATE CURRENT_TIME UTC_DATE UTC_TIME")
	// What stands before a bracket and calls nothing.
	beforeBracket = words("IN VALUES VALUE AND OR NOT EXISTS WHERE ON SELECT FROM JOIN SET BY AS INTO HAVING THEN ELSE WHEN BETWEEN LIKE UNION ALL ANY DIV INTERVAL USING")
	// Words that make a statement unknown wherever they stand.
	unknownWords = words("WITH OUTFILE DUMPFILE CALL LOAD HANDLER PROCEDURE PARTITION LATERAL JSON_TABLE EXTRACT NATURAL")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

var tokens = regexp.MustCompile("(?s)'(?:[^'\\\\]|''|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|@@[A-Za-z_.]+|[A-Za-z_][A-Za-z0-9_$]*|[0-9]+(?:\\.[0-9]+)?|--|/\\*|[<>!=]+|\\S")

// statement is the tokens of one. Upper has them in capitals, and names without their quotes.
type statement struct{ text, upper []string }

func parseStatement(text string) statement {
	s := statement{text: tokens.FindAllString(text, -1)}
	for _, t := range s.text {
		s.upper = append(s.upper, strings.ToUpper(t))
	}
	return s
}

func (s statement) at(i int) string {
	if i < 0 || i >= len(s.upper) {
		return ""
	}
	return s.upper[i]
}

// name is the table or column at i, empty for what is no name.
func (s statement) name(i int) string {
	if i >= len(s.text) {
		return ""
	}
	name := strings.Trim(s.text[i], "`")
	if name == "" || !isWord(name[0]) {
		return ""
	}
	return name
}

func isWord(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// has says whether these words stand next to each other somewhere.
func (s statement) has(words ...string) bool {
	for i := range s.upper {
		if len(s.upper)-i >= len(words) && slices.Equal(s.upper[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// calls has what the functions of a statement touch. It is false for a function that is not known.
func (s statement) calls() (touches []Touch, known bool) {
	mysql := func(thing string, does Does) {
		touches = append(touches, Touch{labmode.MySQLServer, thing, "", does})
	}
	for i, word := range s.upper {
		switch {
		case clocks[word]:
			mysql(Clock, Reads)
		case unknownWords[word], word == ";", word == "@", word == "--", word == "/*", word == "#":
			return nil, false
		case s.at(i+1) != "(" || s.at(i-1) == "INTO" || word[0] != '`' && !isWord(word[0]):
		case s.at(i-1) == ".":
			return nil, false
		case pureFunctions[word] || beforeBracket[word]:
		case word == "GET_LOCK" || word == "RELEASE_LOCK":
			does := Locks
			if word == "RELEASE_LOCK" || s.at(i+4) == "0" {
				does |= Asks // and does not wait
			}
			mysql(s.lockName(i+2), does)
		case word == "RELEASE_ALL_LOCKS":
			mysql("", Locks|Asks)
		case word == "IS_FREE_LOCK" || word == "IS_USED_LOCK":
			mysql(s.lockName(i+2), Asks)
		default:
			return nil, false
		}
	}
	return touches, true
}

// lockName is the thing whose name stands at i: a text alone in its bracket, or before the next argument.
func (s statement) lockName(i int) string {
	if next := s.at(i + 1); next != ")" && next != "," || !strings.HasPrefix(s.at(i), "'") {
		return ""
	}
	return namedThing + strings.ToLower(strings.Trim(s.text[i], "'"))
}

// tables are those that a statement names after from, and false where it names something else.
func (s statement) tables(from int) (all []string, ok bool) {
	for i := from; i < len(s.upper); i++ {
		if s.upper[i] != "FROM" && s.upper[i] != "JOIN" {
			continue
		}
		for listed := true; listed; {
			i++
			if s.at(i) == "(" {
				break // its own FROM comes
			}
			name := s.name(i)
			if name == "" || s.at(i+1) == "." || s.at(i+1) == "(" {
				return nil, false
			}
			if s.at(i) != "DUAL" {
				all = append(all, name)
			}
			if s.at(i+1) == "AS" {
				i++
			}
			if next := s.name(i + 1); next != "" && !clauses[strings.ToUpper(next)] {
				i++ // its alias
			}
			if listed = s.at(i+1) == ","; listed {
				i++
			}
		}
	}
	return all, true
}

var clauses = words("WHERE GROUP ORDER HAVING LIMIT FOR LOCK UNION JOIN INNER LEFT RIGHT CROSS STRAIGHT_JOIN ON USING FORCE USE IGNORE SET")

// row is the row that the last WHERE names by the whole primary key, empty where it names others, too.
func (s statement) row(t Table) string {
	where := -1
	for i, word := range s.upper {
		switch word {
		case "WHERE":
			if where >= 0 {
				return ""
			}
			where = i
		case "SELECT", "JOIN", "UNION":
			if i > 0 {
				return ""
			}
		}
	}
	if where < 0 || len(t.Primary) == 0 {
		return ""
	}
	equal := map[string]string{}
	depth := 0
	for i := where + 1; i < len(s.upper); i++ {
		switch s.upper[i] {
		case "(":
			depth++
		case ")":
			depth--
		case "OR", "XOR", "NOT", "BETWEEN", "CASE", "|":
			if depth == 0 {
				return "" // an OR between the conditions, or an AND that is none
			}
		case "=":
			before := i - 2
			if s.at(before) == "." { // a column with its table
				before -= 2
			}
			if b := s.at(before); depth > 0 || b != "WHERE" && b != "AND" {
				continue
			}
			if after := s.at(i + 2); after != "" && after != "AND" && after != "LIMIT" && after != "FOR" && after != "LOCK" && after != "ORDER" {
				continue
			}
			if value := simple(s.at(i + 1)); value != "" {
				equal[strings.ToLower(s.name(i-1))] = value
			}
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

// simple is a value that equals another one only if both are written alike: a whole number, or a text
// of letters and digits.
func simple(value string) string {
	if value == "" || isWord(value[0]) {
		return "" // a column
	}
	if bare := strings.Trim(value, "'"); bare != "" && strings.Trim(bare, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" {
		if strings.Trim(bare, "0123456789") == "" {
			bare = strings.TrimLeft(bare, "0")
		}
		return bare
	}
	return ""
}

// sets says whether an UPDATE changes one of these columns.
func (s statement) sets(columns []string) bool {
	set, end := slices.Index(s.upper, "SET"), slices.Index(s.upper, "WHERE")
	if end < 0 {
		end = len(s.upper)
	}
	for i := set + 1; i < end; i++ {
		if s.at(i+1) == "=" && slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, s.name(i)) }) {
			return true
		}
	}
	return false
}

// sqlTouches is what a statement touches. One that is not understood touches everything.
func (s Schema) sqlTouches(r Request) []Touch {
	stmt := parseStatement(r.Text)
	switch stmt.at(0) {
	case "COMMIT", "ROLLBACK":
		return s.ends(r, stmt.at(0) == "COMMIT")
	}
	touches, known := stmt.calls()
	if !known || !knownIsolation[r.Isolation] {
		return Everything(r.Server)
	}
	writes := Writes
	if r.Tx {
		writes = 0
	}
	var ok bool
	switch stmt.at(0) {
	case "DO":
		return touches
	case "SELECT":
		ok = s.selects(r, stmt, &touches)
	case "INSERT", "REPLACE":
		ok = s.inserts(stmt, writes, &touches)
	case "UPDATE", "DELETE":
		ok = s.changes(stmt, writes, &touches)
	}
	if !ok {
		return Everything(r.Server)
	}
	return touches
}

// knownIsolation has the levels under which a plain read takes no lock, and reads what is committed.
var knownIsolation = map[string]bool{"": true, "Default": true, "Repeatable Read": true, readCommitted: true}

const readCommitted = "Read Committed"

// ends is what a COMMIT or ROLLBACK touches: the locks that it frees, and what it makes seen.
func (s Schema) ends(r Request, commits bool) []Touch {
	var all []Touch
	for _, e := range r.Earlier {
		wrote := commits && parseStatement(e.Text).at(0) != "SELECT"
		for _, t := range s.sqlTouches(Request{Server: r.Server, Text: e.Text, Tx: true}) {
			if t.Does &= Locks | Shares | Inserts; t.Does == 0 {
				continue
			}
			if wrote && t.Does&(Locks|Inserts) != 0 {
				t.Does |= Writes
			}
			all = append(all, t)
		}
	}
	return all
}

// selects adds what a SELECT touches. The first plain one of a transaction reads everything as it is
// then, and those after it read the same: under REPEATABLE READ a snapshot is made by the first read.
func (s Schema) selects(r Request, stmt statement, to *[]Touch) bool {
	tables, ok := stmt.tables(0)
	if !ok || stmt.has("INTO") {
		return false
	}
	does := Reads
	switch {
	case strings.Count(strings.Join(stmt.upper, " "), "SELECT ") > 1 && (stmt.has("FOR") || stmt.has("LOCK")):
		return false // what is read inside is not locked
	case stmt.has("FOR", "UPDATE"):
		does |= Locks
	case stmt.has("IN", "SHARE", "MODE"), stmt.has("FOR", "SHARE"):
		does |= Shares
	case stmt.has("LOCK"):
		return false
	}
	if stmt.has("SKIP", "LOCKED") || stmt.has("NOWAIT") {
		does |= Asks
	}
	snapshot := r.Tx && does == Reads && r.Isolation != readCommitted
	if snapshot && len(tables) > 0 && slices.ContainsFunc(r.Earlier, s.makesSnapshot) {
		return true
	}
	for _, name := range tables {
		t, known := s[name]
		if !known {
			return false
		}
		touch := Touch{Server: r.Server, Thing: tableThing + name, Does: does}
		if len(tables) == 1 {
			touch.Row = stmt.row(t)
		}
		if snapshot {
			touch = Touch{Server: r.Server, Does: does}
		}
		*to = append(*to, touch)
	}
	return true
}

func (s Schema) makesSnapshot(of Statement) bool {
	stmt := parseStatement(of.Text)
	tables, ok := stmt.tables(0)
	return ok && of.Matched && len(tables) > 0 && stmt.at(0) == "SELECT" && !stmt.has("FOR") && !stmt.has("LOCK")
}

// inserts adds what an INSERT touches: its table, and the rows that its foreign keys name.
func (s Schema) inserts(stmt statement, writes Does, to *[]Touch) bool {
	into := slices.Index(stmt.upper, "INTO")
	name := stmt.name(into + 1)
	t, known := s[name]
	if into < 0 || into > 2 || !known {
		return false
	}
	does := Inserts | writes
	if stmt.at(0) == "REPLACE" || stmt.has("ON", "DUPLICATE", "KEY") {
		if len(t.Children) > 0 {
			return false
		}
		does |= Locks | Reads
	}
	*to = append(*to, Touch{Server: labmode.MySQLServer, Thing: tableThing + name, Does: does})
	if t.Born {
		*to = append(*to, Touch{Server: labmode.MySQLServer, Thing: Clock, Does: Reads})
	}
	s.asks(t.Parents, to)
	return s.sources(stmt, into+2, to)
}

// asks adds what a check of foreign keys touches.
func (s Schema) asks(tables []string, to *[]Touch) {
	for _, name := range tables {
		*to = append(*to, Touch{Server: labmode.MySQLServer, Thing: tableThing + name, Does: Reads | Shares})
	}
}

// sources adds the tables that a statement that writes reads: it locks what it finds there.
func (s Schema) sources(stmt statement, from int, to *[]Touch) bool {
	tables, ok := stmt.tables(from)
	for _, name := range tables {
		if _, known := s[name]; !known {
			return false
		}
	}
	s.asks(tables, to)
	return ok
}

// changes adds what an UPDATE or a DELETE of one table touches.
func (s Schema) changes(stmt statement, writes Does, to *[]Touch) bool {
	at, next := 1, "SET"
	if stmt.at(0) == "DELETE" {
		at, next = 2, "WHERE"
	}
	name := stmt.name(at)
	t, known := s[name]
	if !known || stmt.at(at+1) != next || at == 2 && stmt.at(1) != "FROM" {
		return false
	}
	touch := Touch{Server: labmode.MySQLServer, Thing: tableThing + name, Row: stmt.row(t), Does: Reads | Locks | writes}
	keyed := at == 2 || stmt.sets(t.Unique)
	if at == 1 && keyed {
		touch.Row = "" // the row gets another key
	}
	if keyed && len(t.Children) > 0 {
		return false // what its foreign keys do to other tables is not known
	}
	*to = append(*to, touch)
	if at == 1 && t.Changed {
		*to = append(*to, Touch{Server: labmode.MySQLServer, Thing: Clock, Does: Reads})
	}
	if at == 1 && stmt.sets(t.Foreign) {
		s.asks(t.Parents, to)
	}
	return s.sources(stmt, at+1, to)
}

// AsksForTime says whether a statement names the clock of MySQL.
func (r Request) AsksForTime() bool {
	return slices.ContainsFunc(parseStatement(r.Text).upper, func(word string) bool { return clocks[word] })
}
