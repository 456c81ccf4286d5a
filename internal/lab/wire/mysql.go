package wire

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The commands of MySQL's protocol that matter here.
const (
	comQuit          = 0x01
	comInitDB        = 0x02
	comQuery         = 0x03
	comFieldList     = 0x04
	comPing          = 0x0e
	comChangeUser    = 0x11
	comPrepare       = 0x16
	comExecute       = 0x17
	comSendLongData  = 0x18
	comStmtClose     = 0x19
	comFetch         = 0x1c
	comReset         = 0x1f
	statusInTx       = 0x0001
	statusAutocommit = 0x0002
	statusMore       = 0x0008
)

// mysqlConn is one connection as its packets describe it.
type mysqlConn struct {
	*Conn
	proxy              *Proxy
	client, server     *bufio.Reader
	prepared           map[uint32]*prepared
	last               uint32 // the statement that was prepared last
	inTx, autocommit   bool
	ended              bool   // since the last command was sent, no transaction was open for a moment
	named              bool   // it may have locks of GET_LOCK or LOCK TABLES
	database           string // that it has turned to
	isolation, forNext string // of the session, and of the next transaction
	begun              string // the isolation of the transaction under way
}

func (p *Proxy) serveMySQL(c *Conn) (inTx bool) {
	m := &mysqlConn{
		Conn: c, proxy: p, client: bufio.NewReader(c.client), server: bufio.NewReader(c.server), prepared: map[uint32]*prepared{}, autocommit: true,
	}
	if m.handshake() != nil {
		return false
	}
	for {
		packet, err := readPacket(m.client)
		if err != nil || len(packet) < 5 {
			return m.inTx
		}
		command := packet[4]
		if command == comQuit {
			_, _ = c.server.Write(packet)
			return m.inTx
		}
		text, pass := m.describe(packet)
		var x *Exchange
		if !pass {
			if !m.inTx {
				m.begin()
			}
			verb, _, _ := strings.Cut(text, " ")
			x = &Exchange{
				Process: p.process, Conn: c, Server: MySQL, Name: stepName(verb), Text: text, Tx: m.inTx || !m.autocommit, Isolation: m.begun, Database: m.database,
			}
			if !p.tap.Sent(x) {
				return m.inTx
			}
		}
		_, err = c.server.Write(packet)
		if command == comSendLongData || command == comStmtClose {
			if st := m.statement(packet); st != nil && command == comSendLongData {
				st.long = true
			} else if st != nil {
				delete(m.prepared, binary.LittleEndian.Uint32(packet[5:]))
			}
			continue
		}
		raw, a, before := []byte(nil), answer{text: "no answer"}, m.inTx
		m.ended = false
		if err == nil && command == comChangeUser {
			raw, a, err = m.changeUser(packet)
		} else if err == nil {
			raw, a, err = m.answer(packet)
		}
		failed, levelled := strings.HasPrefix(a.text, "error: "), false
		switch {
		case err != nil:
		case failed:
			m.ask()
		case command == comReset || command == comChangeUser:
			m.isolation, m.forNext, m.named, m.prepared = "", "", false, map[uint32]*prepared{}
		case a.ok:
			levelled = m.noteIsolation(text)
		}
		ends := m.ends(text, before, a.ok)
		if ends || (pass || levelled) && !before && m.inTx {
			m.begin()
		}
		if x != nil {
			x.Answer, x.Matched, x.Failed, x.Ends, x.Open = short(a.text), a.matched, failed, ends, m.inTx
			if !p.tap.Answered(x) {
				return m.inTx
			}
		}
		if err != nil {
			return m.inTx
		}
		if _, err := c.client.Write(raw); err != nil {
			return m.inTx
		}
	}
}

// begin notes the isolation of a transaction that begins.
func (m *mysqlConn) begin() { m.begun, m.forNext = cmp.Or(m.forNext, m.isolation), "" }

// handshake passes the greeting on, without what would hide or change the packets that follow, and then what
// both say until the client is let in.
func (m *mysqlConn) handshake() error {
	greeting, err := readPacket(m.server)
	if err != nil {
		return err
	}
	if len(greeting) > 4 && greeting[4] == 0x0a {
		m.Thread = strip(greeting)
	}
	if _, err := m.Conn.client.Write(greeting); err != nil {
		return err
	}
	reply, err := readPacket(m.client)
	if err != nil {
		m.proxy.left.Store(true)
		return err
	}
	if len(reply) >= 8 && binary.LittleEndian.Uint16(reply[4:])&capSSL != 0 {
		m.proxy.cannot("TLS to MySQL: switch it off in the service's settings, such as ssl-mode=DISABLED")
		return errCannot
	}
	if len(reply) >= 8 { // some clients ask for more than was offered
		withhold(reply[4:6], reply[6:8])
	}
	if _, err := m.Conn.server.Write(reply); err != nil {
		return err
	}
	last, err := m.authenticate()
	if err == nil {
		_, err = m.Conn.client.Write(last)
	}
	if err != nil {
		return err
	}
	if last[4] != 0x00 {
		return errCannot
	}
	m.proxy.entered.Store(true)
	return nil
}

// changeUser has the client be let in as another user. The packet that says so at last is not sent to it yet.
func (m *mysqlConn) changeUser(packet []byte) (last []byte, a answer, err error) {
	if last, err = m.authenticate(); err != nil {
		return nil, answer{text: "no answer"}, err
	}
	if last[4] != 0x00 {
		return last, answer{text: "error: " + failure(last)}, nil
	}
	m.database = ""
	if _, rest, ok := bytes.Cut(packet[5:], []byte{0}); ok && len(rest) > 0 && 1+int(rest[0]) <= len(rest) { // behind the user and its password
		database, _, _ := bytes.Cut(rest[1+int(rest[0]):], []byte{0})
		m.database = string(database)
	}
	return last, answer{text: "ok", ok: true}, nil
}

var errCannot = errors.New("nothing that the proxy can read")

// authenticate passes on what both say until the server has let the client in, or not, and returns that packet. Nothing of it
// is kept.
func (m *mysqlConn) authenticate() (last []byte, err error) {
	for {
		packet, err := readPacket(m.server)
		if err != nil || len(packet) < 5 {
			return nil, cmp.Or(err, errCannot)
		}
		switch packet[4] {
		case 0x00:
			m.ok(packet)
			return packet, nil
		case 0xff:
			return packet, nil
		}
		if _, err = m.Conn.client.Write(packet); err != nil {
			return nil, err
		}
		if packet[4] == 0x01 && len(packet) > 5 && packet[5] == 0x03 { // a password that was checked already: OK follows
			continue
		}
		if packet, err = readPacket(m.client); err != nil {
			return nil, err
		}
		if _, err := m.Conn.server.Write(packet); err != nil {
			return nil, err
		}
	}
}

// The capabilities that a server may offer and that the proxy takes from its greeting.
const (
	capCompress = 0x0020
	capSSL      = 0x0800

	highSessionTrack     = 1 << 7
	highDeprecateEOF     = 1 << 8
	highOptionalMetadata = 1 << 9
	highZstd             = 1 << 10
	highQueryAttributes  = 1 << 11
)

// strip changes the greeting, and returns the number of the connection.
func strip(packet []byte) (thread uint64) {
	at := 5 + bytes.IndexByte(packet[5:], 0) + 1
	if at+4+8+1+2+3+2 > len(packet) {
		return 0
	}
	thread = uint64(binary.LittleEndian.Uint32(packet[at:]))
	at += 4 + 8 + 1
	withhold(packet[at:], packet[at+5:])
	for i := at + 14; i < at+18 && i < len(packet); i++ { // MariaDB's own
		packet[i] = 0
	}
	return thread
}

// withhold takes from capabilities what would hide or change the packets that follow.
func withhold(low, high []byte) {
	binary.LittleEndian.PutUint16(low, binary.LittleEndian.Uint16(low)&^(capCompress|capSSL))
	binary.LittleEndian.PutUint16(high, binary.LittleEndian.Uint16(high)&^(highSessionTrack|highDeprecateEOF|highOptionalMetadata|highZstd|highQueryAttributes))
}

// passes are the statements that set a connection up, or begin a transaction: nobody else notices them. A SET may call
// only functions that look at nothing.
var passes = regexp.MustCompile(`(?i)^(?:SET (?:[^(]|\b(?:CONCAT|REPLACE|IFNULL|COALESCE|LAST_INSERT_ID|ROW_COUNT|NOW|UUID)\()*|(?:SHOW|USE|SAVEPOINT|EXPLAIN|DESC|DESCRIBE)\b.*|` +
	`START TRANSACTION(?: READ (?:ONLY|WRITE))?|BEGIN(?: WORK)?|SELECT @@[^(]*|SELECT (?:DATABASE|VERSION|CONNECTION_ID)\(\)|SELECT 1|SELECT .*\bFROM information_schema\b.*)$`)

var (
	inQuotes = regexp.MustCompile("(?s)'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")
	forOne   = regexp.MustCompile(`(?i)^SET STATEMENT\b`) // MariaDB: a statement with a setting of its own
	commits  = regexp.MustCompile(`(?i)^SET\b.*\bautocommit ?:?= ?(?:1\b|ON\b|TRUE\b|DEFAULT\b|@)`)
	restarts = regexp.MustCompile(`(?i)^(?:BEGIN(?: WORK)?|START TRANSACTION\b.*|(?:COMMIT|ROLLBACK)(?: WORK)? AND CHAIN\b.*)$`)
	xaEnds   = regexp.MustCompile(`(?i)^XA (?:COMMIT|ROLLBACK)\b`)
	xaStays  = regexp.MustCompile(`(?i)^XA PREPARE\b`)
	names    = regexp.MustCompile(`(?i)\bGET_LOCK ?\(|\bLOCK TABLES?\b`)
	turns    = regexp.MustCompile("(?i)^USE `?([^`]+)`?$")
)

// statements are those of a text, without what is in quotes.
func statements(text string) []string {
	all := strings.Split(inQuotes.ReplaceAllString(text, "''"), ";")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// ends says whether the transaction that was open before a statement has ended with it. The server says whether one is
// open, and not that it is another one. Of XA it says neither.
func (m *mysqlConn) ends(text string, before, ok bool) bool {
	switch {
	case xaEnds.MatchString(text):
		return ok
	case !before || xaStays.MatchString(text):
		return false
	}
	return m.ended || ok && slices.ContainsFunc(statements(text), restarts.MatchString)
}

var (
	// Of comments, the server carries out those that begin with an exclamation mark: /*!, or /*M! with MariaDB.
	comment  = regexp.MustCompile(`(?s)^\s*(/\*(?:M?\*/|(?:[^!M]|M[^!]).*?\*/)\s*|--[^\n]*\n\s*|#[^\n]*\n\s*)+`)
	behind   = regexp.MustCompile(`(?s)^(.*)/\*(?:(?:[^!M]|M[^!])[^*]*(?:\*+[^/*][^*]*)*)?\*/$`)
	whole    = regexp.MustCompile(`(?s)^/\*M?!\d*\s+(.*?)\s*\*/$`)
	trailing = regexp.MustCompile(`[\s;]+$`)
)

// uncommented is a text without the comments around it, where something is left.
func uncommented(text string) string {
	text = trailing.ReplaceAllString(text, "")
	kept := comment.ReplaceAllString(text, "")
	if last := behind.FindStringSubmatch(kept); last != nil {
		before := inQuotes.ReplaceAllString(last[1], "") // it may begin in quotes, or in the comment
		if !strings.ContainsAny(before, "'\"`") && strings.Count(before, "/*") == strings.Count(before, "*/") {
			kept = trailing.ReplaceAllString(last[1], "")
		}
	}
	if kept == "" {
		return text
	}
	return whole.ReplaceAllString(kept, "$1")
}

// describe is a command as it is shown. Pass says that it is none that others notice.
func (m *mysqlConn) describe(packet []byte) (text string, pass bool) {
	switch packet[4] {
	case comQuery:
		text = string(packet[5:])
	case comExecute:
		st := m.statement(packet)
		if st == nil {
			return "EXECUTE", false
		}
		text = st.bind(packet)
	case comReset, comChangeUser:
		return "RESET CONNECTION", !m.inTx && !m.named
	case comInitDB:
		m.database = string(packet[5:])
		return "", true
	default:
		return "", true
	}
	if text = strings.Join(strings.Fields(uncommented(text)), " "); text == "" {
		return "", true
	}
	if upper := strings.ToUpper(text); strings.Contains(upper, "IDENTIFIED ") || strings.Contains(upper, "PASSWORD") { // it can have a password
		return strings.Join(strings.Fields(text)[:1], " ") + " …", false
	}
	verb, rest, _ := strings.Cut(text, " ")
	text = strings.TrimSpace(strings.ToUpper(verb) + " " + rest)
	upper := strings.ToUpper(text)
	if upper == "COMMIT" || upper == "ROLLBACK" || upper == "COMMIT WORK" || upper == "ROLLBACK WORK" {
		verb, _, _ := strings.Cut(upper, " ")
		return verb, !m.inTx
	}
	if to := turns.FindStringSubmatch(text); to != nil {
		m.database = to[1]
	}
	m.named = m.named || names.MatchString(text)
	ends := m.inTx && (restarts.MatchString(text) || !m.autocommit && commits.MatchString(text))
	return text, passes.MatchString(text) && !ends && !forOne.MatchString(text) && len(statements(text)) == 1
}

// setsLevel is what sets the level of transactions: a SET TRANSACTION, or the variable.
var setsLevel = regexp.MustCompile(`(?:^SET (?:(\w+) )?(TRANSACTION) .*|(@@)?(?:\b(\w+)[. ])?T(?:RANSACTION|X)_ISOLATION ?:?= ?["']?)(READ UNCOMMITTED|READ COMMITTED|REPEATABLE READ|SERIALIZABLE)`)

// noteIsolation notes what the statements of a text set for transactions, and says whether that is anything. Without a scope,
// SET TRANSACTION and @@transaction_isolation are for the next one. The variable's name alone is for the session.
func (m *mysqlConn) noteIsolation(text string) (noted bool) {
	for statement := range strings.SplitSeq(strings.ToUpper(text), ";") {
		statement = strings.ReplaceAll(strings.TrimSpace(statement), "-", " ")
		if !strings.HasPrefix(statement, "SET ") {
			continue
		}
		for _, set := range setsLevel.FindAllStringSubmatch(statement, -1) {
			scope, name := set[1]+set[4], levelNames[set[5]]
			switch {
			case scope == "GLOBAL" || strings.HasPrefix(scope, "PERSIST"): // nothing of this connection
			case scope == "" && set[2]+set[3] != "":
				m.forNext, noted = name, true
			default:
				m.isolation, noted = name, true
			}
		}
	}
	return noted
}

var levelNames = map[string]string{
	"READ UNCOMMITTED": "Read Uncommitted", "READ COMMITTED": "Read Committed", "REPEATABLE READ": "Repeatable Read", "SERIALIZABLE": "Serializable",
}

func (m *mysqlConn) statement(packet []byte) *prepared {
	if len(packet) < 9 {
		return nil
	}
	id := binary.LittleEndian.Uint32(packet[5:])
	if id == 0xffffffff { // MariaDB: the last one
		id = m.last
	}
	return m.prepared[id]
}

// answer is what the server has answered to a command.
type answer struct {
	text        string
	ok, matched bool
}

// answer reads the whole answer to a command.
func (m *mysqlConn) answer(packet []byte) (raw []byte, a answer, err error) {
	next := func() []byte {
		var p []byte
		if err == nil {
			p, err = readPacket(m.server)
		}
		if err != nil {
			return []byte{0, 0, 0, 0, 0xff}
		}
		raw = append(raw, p...)
		if len(p) < 5 {
			return append(p, 0)
		}
		return p
	}
	skip := func(n int) { // so many definitions, and the packet that ends any
		for i := 0; n > 0 && i <= n; i++ {
			next()
		}
	}
	command := packet[4]
	switch command {
	case comPrepare:
		p := next()
		if p[4] == 0 && len(p) >= 13 {
			id, columns, params := binary.LittleEndian.Uint32(p[5:]), int(binary.LittleEndian.Uint16(p[9:])), int(binary.LittleEndian.Uint16(p[11:]))
			m.prepared[id], m.last = &prepared{text: string(packet[5:]), params: params}, id
			skip(params)
			skip(columns)
		}
		return raw, answer{text: "prepared"}, err
	case comQuery, comExecute, comFetch, comFieldList:
	default:
		if p := next(); p[4] == 0x00 {
			m.ok(p)
		}
		return raw, answer{}, err
	}
	all, results := []string{""}, 0
	if command == comQuery {
		all = statements(string(packet[5:]))
	}
	is := func(result answer) { // the last counts, but that of a SET, and what a CALL ends with
		if results == 0 || results < len(all) && !strings.HasPrefix(strings.ToUpper(all[results]), "SET ") {
			a = result
		}
		results++
	}
	for more := true; more && err == nil; {
		more = false
		p := next()
		switch {
		case err != nil:
		case p[4] == 0xff:
			return raw, answer{text: "error: " + failure(p)}, err
		case p[4] == 0xfb && command == comQuery:
			m.proxy.cannot("LOAD DATA LOCAL to MySQL")
			return raw, a, fmt.Errorf("a request for a local file")
		case p[4] == 0x00 && command != comFetch:
			var rows uint64
			rows, more = m.ok(p)
			is(answer{text: rowsAffected(packet, int(rows)), ok: true, matched: rows > 0})
		default:
			var columns []column
			if command == comQuery || command == comExecute {
				at := 4
				for range int(lenenc(p, &at)) {
					columns = append(columns, readColumn(next()))
				}
				p = next() // EOF; with a cursor there is nothing more
				if isEOF(p) && len(p) >= 9 && binary.LittleEndian.Uint16(p[7:])&0x0040 != 0 {
					m.status(binary.LittleEndian.Uint16(p[7:]))
					return raw, answer{text: "a cursor", ok: true}, err
				}
				p = next()
			}
			found, first := 0, ""
			for ; !isEOF(p) && p[4] != 0xff && err == nil; p = next() {
				if found++; found == 1 && columns != nil {
					first = readRow(p, columns, command == comExecute)
				}
			}
			if isEOF(p) && len(p) >= 9 {
				more = m.status(binary.LittleEndian.Uint16(p[7:]))
			} else if p[4] == 0xff && err == nil {
				return raw, answer{text: "error: " + failure(p)}, err
			}
			is(answer{text: rowsFound(found, first), ok: true, matched: found > 0})
		}
	}
	if err != nil {
		a = answer{text: "no answer"}
	}
	return raw, a, err
}

// ok reads a packet that says so.
func (m *mysqlConn) ok(p []byte) (rows uint64, more bool) {
	at := 5
	rows, _ = lenenc(p, &at), lenenc(p, &at)
	if at+2 <= len(p) {
		more = m.status(binary.LittleEndian.Uint16(p[at:]))
	}
	return rows, more
}

// ask asks the server for what it says of the connection, since an error does not say that.
func (m *mysqlConn) ask() {
	if _, err := m.Conn.server.Write([]byte{1, 0, 0, 0, comPing}); err != nil {
		return
	}
	if p, err := readPacket(m.server); err == nil && len(p) > 4 && p[4] == 0x00 {
		m.ok(p)
	}
}

// status notes what the server says of the connection, and returns whether another result follows.
func (m *mysqlConn) status(flags uint16) (more bool) {
	m.inTx, m.autocommit = flags&statusInTx != 0, flags&statusAutocommit != 0
	m.ended = m.ended || !m.inTx
	return flags&statusMore != 0
}

func rowsAffected(packet []byte, rows int) string {
	upper := strings.ToUpper(string(packet[5:min(len(packet), 13)]))
	if packet[4] == comQuery && (strings.HasPrefix(upper, "COMMIT") || strings.HasPrefix(upper, "ROLLBACK")) {
		return "ok"
	}
	if rows == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", rows)
}

func rowsFound(n int, first string) string {
	switch n {
	case 0:
		return "no row"
	case 1:
		return first
	}
	return fmt.Sprintf("%d rows, the first %s", n, first)
}

// failure is an error as Go's driver writes it.
func failure(p []byte) string {
	if len(p) < 7 {
		return "unknown"
	}
	text := string(p[7:])
	if len(p) > 13 && p[7] == '#' {
		text = string(p[13:])
	}
	return fmt.Sprintf("Error %d: %s", binary.LittleEndian.Uint16(p[5:]), text)
}
