package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readPacket reads a packet with its header. One of 16 MB or more comes with those that continue it.
func readPacket(r *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, err
		}
		n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
		p := append(head, make([]byte, n)...)
		if _, err := io.ReadFull(r, p[4:]); err != nil {
			return nil, err
		}
		if whole = append(whole, p...); n < 1<<24-1 {
			return whole, nil
		}
	}
}

func isEOF(p []byte) bool { return p[4] == 0xfe && len(p) < 13 }

// lenenc reads a number of MySQL's variable length at a place, and moves on. It is 0 past the end.
func lenenc(p []byte, at *int) uint64 {
	if *at >= len(p) {
		return 0
	}
	n := map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[p[*at]]
	if *at++; n == 0 {
		return uint64(p[*at-1])
	}
	if *at+n > len(p) {
		*at = len(p)
		return 0
	}
	b := make([]byte, 8)
	copy(b, p[*at:*at+n])
	*at += n
	return binary.LittleEndian.Uint64(b)
}

// lenencText reads a string with its length.
func lenencText(p []byte, at *int) string {
	n := int(lenenc(p, at))
	if n < 0 || *at+n > len(p) {
		*at = len(p)
		return ""
	}
	s := string(p[*at : *at+n])
	*at += n
	return s
}

// column is one of a result.
type column struct {
	name     string
	kind     byte
	unsigned bool
}

func readColumn(p []byte) column {
	at := 4
	var name string
	for range 5 { // catalogue, schema, table, table before an alias, name
		name = lenencText(p, &at)
	}
	lenencText(p, &at)
	at += 1 + 2 + 4 // the length of what follows, character set, width
	if at+3 > len(p) {
		return column{name: name}
	}
	return column{name: name, kind: p[at], unsigned: binary.LittleEndian.Uint16(p[at+1:])&0x20 != 0}
}

// The types of columns and parameters whose values have a fixed length.
var widths = map[byte]int{1: 1, 2: 2, 13: 2, 3: 4, 9: 4, 4: 4, 8: 8, 5: 8}

const (
	typeFloat  = 4
	typeDouble = 5
	typeNull   = 6
)

// times are the types of dates and times: they begin with their length.
var times = map[byte]bool{7: true, 10: true, 11: true, 12: true}

// readRow is a row as it is shown, such as id=1 stock=2.
func readRow(p []byte, columns []column, binaryRow bool) string {
	var fields []string
	add := func(c column, v string) { fields = append(fields, c.name+"="+v) }
	at := 4
	if !binaryRow {
		for _, c := range columns {
			if at < len(p) && p[at] == 0xfb {
				at++
				add(c, "NULL")
				continue
			}
			add(c, shown(lenencText(p, &at)))
		}
		return strings.Join(fields, " ")
	}
	at++
	nulls := at
	at += (len(columns) + 7 + 2) / 8
	for i, c := range columns {
		bit := i + 2
		if nulls+bit/8 < len(p) && p[nulls+bit/8]>>(bit%8)&1 == 1 {
			add(c, "NULL")
			continue
		}
		v, ok := binaryValue(p, &at, c.kind, c.unsigned)
		if !ok {
			return strings.Join(append(fields, "…"), " ")
		}
		add(c, v)
	}
	return strings.Join(fields, " ")
}

// binaryValue reads a value of the binary protocol. Ok is false past the end.
func binaryValue(p []byte, at *int, kind byte, unsigned bool) (text string, ok bool) {
	width := widths[kind]
	switch {
	case width > 0 && *at+width <= len(p):
		b := make([]byte, 8)
		copy(b, p[*at:*at+width])
		*at += width
		n := binary.LittleEndian.Uint64(b)
		switch {
		case kind == typeFloat:
			return fmt.Sprint(math.Float32frombits(uint32(n))), true
		case kind == typeDouble:
			return strconv.FormatFloat(math.Float64frombits(n), 'f', -1, 64), true
		case unsigned:
			return strconv.FormatUint(n, 10), true
		}
		shift := 64 - 8*width
		return strconv.FormatInt(int64(n<<shift)>>shift, 10), true
	case width > 0 || *at >= len(p):
		return "", false
	case times[kind]:
		n := int(p[*at])
		*at += 1 + n
		return "(a time)", *at <= len(p)
	}
	return shown(lenencText(p, at)), true
}

const maxShown = 60

// shown is a value as it is shown: a long one by its beginning, bytes by their number.
func shown(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return fmt.Sprintf("<%d bytes>", len(s))
	}
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// prepared is a statement that a connection has prepared.
type prepared struct {
	text   string
	params int
	types  []byte
	long   bool // a parameter came by itself: the values cannot be told
}

// bind writes the parameters of an EXECUTE into the statement. Where they cannot be read, question marks
// stay.
func (st *prepared) bind(p []byte) string {
	if st.params == 0 || st.long {
		st.long = false
		return st.text
	}
	at := 14
	nulls := at
	at += (st.params + 7) / 8
	if at >= len(p) {
		return st.text
	}
	if at++; p[at-1] == 1 {
		if at+2*st.params > len(p) {
			return st.text
		}
		st.types = append([]byte(nil), p[at:at+2*st.params]...)
		at += 2 * st.params
	}
	if len(st.types) < 2*st.params {
		return st.text
	}
	var b strings.Builder
	rest := st.text
	for i := range st.params {
		before, after, found := cutParameter(rest)
		if !found {
			return st.text
		}
		value, ok := "NULL", true
		kind := st.types[2*i]
		if p[nulls+i/8]>>(i%8)&1 == 0 && kind != typeNull {
			value, ok = binaryValue(p, &at, kind, st.types[2*i+1]&0x80 != 0)
			if widths[kind] == 0 && !numeric(value) || times[kind] {
				value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
			}
		}
		if !ok {
			return st.text
		}
		b.WriteString(before + value)
		rest = after
	}
	return b.String() + rest
}

var skipped = regexp.MustCompile(`(?s)^(?:/\*(?:M?\*/|(?:[^!M]|M[^!]).*?\*/)|(?:--\s|#)[^\n]*)`)

// numeric: some drivers send whole numbers as texts.
func numeric(s string) bool { return s != "" && len(s) < 19 && strings.Trim(s, "0123456789") == "" }

// cutParameter cuts a statement at its next question mark that is not in quotes, nor in a comment that the server skips.
func cutParameter(s string) (before, after string, found bool) {
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '/' || c == '-' || c == '#') && skipped.MatchString(s[i:]):
			i += len(skipped.FindString(s[i:])) - 1
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '?':
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
