package schedule

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// Line is what is typed in one customer's terminal, or what happens instead.
type Line struct {
	Customer string // empty for an event that hits all
	Server   string // labmode.RedisServer, labmode.MySQLServer or another; empty for an event
	Replica  bool   // it is typed at the replica of MySQL
	Text     string // the command, or what happens
	Event    Event  // empty for a command
	Waits    string // for what, empty for a command that did not wait
	Answer   string
	Note     string // what else came of it
}

// String is a line as a terminal with redis-cli or mysql shows it, without the answer.
func (l Line) String() string {
	switch {
	case l.Server == "":
		return "-- " + l.Text
	case l.Replica:
		return l.Customer + " mysql (replica)> " + l.Text + ";"
	case l.Server == labmode.MySQLServer:
		return l.Customer + " mysql> " + l.Text + ";"
	}
	return l.Customer + " redis> " + l.Text
}

// Lines are a record as terminals with redis-cli and mysql. The start of a transaction is no step,
// and has a line. A script stands there as EVAL, with its source from script, or as EVALSHA where the
// source is not known.
func (r Record) Lines(in *words.Language, script func(sha string) string) []Line {
	var lines []Line
	begun := map[string]bool{} // by customer
	for _, e := range r.Entries {
		switch {
		case e.Choice == (Choice{}):
			continue
		case !e.Choice.IsStep():
			line := Line{Text: fmt.Sprintf("%s: %s", e.Choice, e.Choice.Event.Doc(in)), Event: e.Choice.Event}
			if e.Choice.Customer != 0 {
				line.Customer = e.Choice.Customer.String()
			}
			lines = append(lines, line)
			continue
		}
		if e.Server == labmode.MySQLServer {
			if e.Tx && !begun[e.Customer] {
				lines = append(lines, Line{Customer: e.Customer, Server: e.Server, Text: "START TRANSACTION"})
			}
			begun[e.Customer] = e.Tx && e.Sent != "COMMIT" && e.Sent != "ROLLBACK"
		}
		lines = append(lines, Line{Customer: e.Customer, Server: e.Server, Replica: e.Replica, Text: withSource(e.Sent, script), Waits: in.Say(e.Blocked), Answer: e.Answer, Note: in.Say(e.Note)})
	}
	return lines
}

var luaComment = regexp.MustCompile(`(?m)(^|\s)--\s.*$`)

// withSource puts a script in the place of its SHA-1, in one line: redis-cli reads no more.
func withSource(command string, script func(string) string) string {
	words := strings.SplitN(command, " ", 3)
	if len(words) < 3 || words[0] != "EVALSHA" {
		return command
	}
	source := strings.Fields(luaComment.ReplaceAllString(script(words[1]), ""))
	if len(source) == 0 {
		return command
	}
	return `EVAL "` + strings.Join(source, " ") + `" ` + words[2]
}

// Transcript prints the lines of a record with their answers, and how it ended.
func Transcript(w io.Writer, in *words.Language, r Record, script func(sha string) string) {
	for _, l := range r.Lines(in, script) {
		if l.Event != "" {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, l)
		if l.Waits != "" {
			fmt.Fprintf(w, "   -- %s\n", in.Say(words.Of("blocked", "by", l.Waits)))
		}
		if l.Answer != "" {
			fmt.Fprintf(w, "   %s\n", l.Answer)
		}
		if l.Note != "" {
			fmt.Fprintf(w, "   -- %s\n", l.Note)
		}
	}
	fmt.Fprintf(w, "\n-- %s\n", in.Say(r.Sentence()))
}
