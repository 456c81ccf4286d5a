// Package transcript turns a played schedule into lines to type by hand, in one terminal for each
// customer. It can also type them itself.
//
// [Of] takes a record of package schedule. It leaves out the ids, times and columns that a person
// need not type. The lease becomes ten seconds, so that there is time to type. [Type] sends the
// lines to a Redis and a MySQL, and adds their answers.
package transcript

import (
	"fmt"
	"regexp"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// Line is what is typed in one customer's terminal, or what happens instead.
type Line struct {
	Customer string // empty for an event that hits nobody alone
	Server   string // labmode.RedisServer or labmode.MySQLServer; empty for an event
	Text     string // the command, or what to do
	Event    schedule.Event
}

// LeaseMS is the lease in a transcript, in milliseconds.
const LeaseMS = 10_000

// Of makes the lines of a record. Script returns the source of a script by its SHA-1. The error
// says what of the record nobody can type.
func Of(r schedule.Record, script func(sha string) string) ([]Line, error) {
	var lines []Line
	inTransaction := map[string]bool{}
	for _, e := range r.Entries {
		if e.Choice == (schedule.Choice{}) {
			continue
		}
		if e.Sent == "" {
			event, err := eventOf(e)
			if err != nil {
				return nil, err
			}
			lines = append(lines, event)
			continue
		}
		if e.Blocked != "" {
			return nil, fmt.Errorf("%s waits for a row", e.Choice)
		}
		line := Line{Customer: e.Customer, Server: e.Server, Text: plain(e.Sent)}
		if e.Server == labmode.MySQLServer {
			if !inTransaction[e.Customer] && strings.HasPrefix(line.Text, "UPDATE") {
				lines = append(lines, Line{Customer: e.Customer, Server: e.Server, Text: "START TRANSACTION"})
				inTransaction[e.Customer] = true
			}
			line.Text = inOneWord(line.Text, e.Customer)
		} else {
			line.Text = withOwner(line.Text, e.Customer, script)
			if strings.HasPrefix(line.Text, "EVALSHA") {
				return nil, fmt.Errorf("%s: the source of its script is not known", e.Choice)
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func eventOf(e schedule.Entry) (Line, error) {
	line := Line{Event: e.Choice.Event}
	if e.Choice.Customer != 0 {
		line.Customer = e.Choice.Customer.String()
	}
	switch line.Event {
	case schedule.Wait:
		line.Text = "wait until ten seconds have passed since the lock was set: the lease ends"
	case schedule.Kill:
		line.Text = "close the terminals of " + line.Customer + ": its process was killed"
	default:
		return Line{}, fmt.Errorf("nobody can type %s", e.Choice)
	}
	return line, nil
}

var (
	itemKey   = regexp.MustCompile(`stock:\d+`)
	itemID    = regexp.MustCompile(`\bid = \d+`)
	inserted  = regexp.MustCompile(`(?s)^INSERT INTO orders \(([^)]*)\) VALUES \(([^)]*)\).*`)
	lease     = regexp.MustCompile(`\b(PX|PEXPIRE \S+) \d+`)
	randomKey = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// plain takes from a command what differs from run to run.
func plain(command string) string {
	command = strings.ReplaceAll(command, "`", "")
	command = itemKey.ReplaceAllString(command, "stock:1")
	command = itemID.ReplaceAllString(command, "id = 1")
	return lease.ReplaceAllString(command, fmt.Sprintf("$1 %d", LeaseMS))
}

// inOneWord leaves the columns of a statement that a sale is about.
func inOneWord(statement, customer string) string {
	statement = strings.Replace(statement, "SELECT * FROM items WHERE id = 1 LIMIT 1", "SELECT stock FROM items WHERE id = 1", 1)
	statement = strings.Replace(statement, ",version=version + 1", "", 1)
	m := inserted.FindStringSubmatch(statement)
	if m == nil {
		return statement
	}
	columns, values := strings.Split(m[1], ","), strings.Split(m[2], ",")
	kept := map[string]string{}
	for i, name := range columns {
		kept[strings.TrimSpace(name)] = strings.TrimSpace(values[min(i, len(values)-1)])
	}
	return fmt.Sprintf("INSERT INTO orders (item_id, customer, stock_read, stock_written) VALUES (1, '%s', %s, %s)",
		customer, kept["stock_read"], kept["stock_written"])
}

// withOwner names a random owner after its customer, and puts a script in the place of its SHA-1.
func withOwner(command, customer string, script func(string) string) string {
	command = randomKey.ReplaceAllString(command, "from-"+customer)
	words := strings.SplitN(command, " ", 3)
	if words[0] != "EVALSHA" || len(words) < 3 {
		return command
	}
	var source []string
	for line := range strings.Lines(script(words[1])) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			source = append(source, line)
		}
	}
	if len(source) == 0 {
		return command
	}
	return `EVAL "` + strings.Join(source, " ") + `" ` + words[2]
}
