// Package transcripttest types the transcript of a played schedule into real servers, for tests.
//
// [Typable] leaves out of the lines of a record the ids, times and columns that a person need not
// type. The lease becomes a minute, so that there is time to type, and the item that of a [Pair]. [Type] sends the lines to a
// Redis and a MySQL, and adds their answers.
package transcripttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// LeaseMS is the lease in what is typed, in milliseconds.
const LeaseMS = 60_000

// Pair stands for the name of those who type. Each pair has a name of its own, so that a room can use one server.
const Pair = "lily"

// Typable returns the lines as a person types them, without answers. The error says what nobody can
// type.
func Typable(lines []schedule.Line) ([]schedule.Line, error) {
	lines = slices.Clone(lines)
	for i := range lines {
		l := &lines[i]
		switch {
		case l.Waits != "":
			return nil, fmt.Errorf("%s waits for a row", l)
		case l.Event == schedule.Wait:
			l.Text = "wait until the lease has ended: PTTL stock:" + Pair + " answers -2"
		case l.Event == schedule.Kill:
			l.Text = "close the terminals of " + l.Customer + ": its process was killed"
		case l.Event != "":
			return nil, fmt.Errorf("nobody can type %s", l.Text)
		case strings.HasPrefix(l.Text, "EVALSHA"):
			return nil, fmt.Errorf("%s: the source of its script is not known", l)
		case l.Server == labmode.MySQLServer:
			l.Text = inOneWord(plain(l.Text), l.Customer)
		default:
			l.Text = randomKey.ReplaceAllString(plain(l.Text), "from-"+l.Customer)
		}
		l.Answer = ""
	}
	return lines, nil
}

var (
	itemKey   = regexp.MustCompile(`stock:\d+`)
	itemID    = regexp.MustCompile(`\bid = \d+`)
	tables    = regexp.MustCompile(`\b(items|orders)\b`)
	inserted  = regexp.MustCompile(`(?s)^INSERT INTO pair_orders \(([^)]*)\) VALUES \(([^)]*)\).*`)
	lease     = regexp.MustCompile(`\b(PX|PEXPIRE \S+) \d+`)
	randomKey = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// plain takes from a command what differs from run to run.
func plain(command string) string {
	command = strings.ReplaceAll(command, "`", "")
	command = itemKey.ReplaceAllString(command, "stock:"+Pair)
	command = tables.ReplaceAllString(command, "pair_$1")
	command = itemID.ReplaceAllString(command, "pair = '"+Pair+"'")
	return lease.ReplaceAllString(command, fmt.Sprintf("$1 %d", LeaseMS))
}

// inOneWord leaves the columns of a statement that a sale is about.
func inOneWord(statement, customer string) string {
	statement = strings.Replace(statement, "SELECT * FROM", "SELECT stock FROM", 1)
	statement = strings.Replace(statement, " LIMIT 1", "", 1)
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
	return fmt.Sprintf("INSERT INTO pair_orders (pair, customer, stock_read, stock_written) VALUES ('%s', '%s', %s, %s)",
		Pair, customer, kept["stock_read"], kept["stock_written"])
}
