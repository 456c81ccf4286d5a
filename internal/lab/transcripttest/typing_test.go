package transcripttest

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

const path = "../../../docs/course/transcripts.md"

var update = flag.Bool("update", false, "write the page of the transcripts")

// typed are the strategies and causes of the kept schedules that are on the page: one for each cause that people can type.
var typed = []string{"none no-lock", "setnx-expire no-expiry", "owner-checked overrun", "set-ex-nx foreign-delete", "owner-get-del split-release"}

// TestTranscripts plays kept schedules, types what follows from them, and compares that with the page.
// With -update it writes the page.
func TestTranscripts(t *testing.T) {
	on := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond, OwnSlots: 1})
	servers := testserver.Start(t)
	redisServer, err := servers.Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, transcripts := 0, make([]string, len(typed))
	t.Run("each", func(t *testing.T) {
		for _, k := range schedule.KeptSchedules() {
			name := fmt.Sprintf("%s %s", k.Strategy, k.Cause)
			number := slices.Index(typed, name)
			if number < 0 {
				continue
			}
			seen++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				record, err := on.PlaySchedule(t.Context(), k.Strategy, k.Schedule.Customers(), k.Schedule)
				if err != nil {
					t.Fatal(err)
				}
				lines, err := Typable(record.Lines(words.English, on.Script))
				if err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open("mysql", testserver.Database(t))
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				own, err := redisconn.Open(fmt.Sprint(redisServer.URL(), "/", number))
				if err != nil {
					t.Fatal(err)
				}
				defer own.Close()
				units := int64(record.Customers - 1)
				lines, left, orders, err := Type(t.Context(), db, own, units, lines)
				if err != nil {
					t.Fatal(err)
				}
				exists, err := own.Do(t.Context(), "EXISTS", "stock:"+Pair).Int64()
				if err != nil {
					t.Fatal(err)
				}
				stuck := orders < units && left > 0 && exists == 1
				if (k.Verdict == verdict.Oversold) != (orders > units) || (k.Verdict == verdict.Stuck) != stuck {
					t.Errorf("typed: %d orders for %d units, lock there: %d; the schedule is %s", orders, units, exists, k.Verdict)
				}
				transcripts[number] = transcript(k, units, lines, left, orders)
			})
		}
	})
	if seen != len(typed) {
		t.Errorf("%d of %d schedules are kept", seen, len(typed))
	}
	compare(t, fmt.Sprintf(setup, strings.Join(Setup(1), ";\n"))+strings.Join(transcripts, ""))
}

const setup = `# Schedules to type

Each customer has two terminals: a redis-cli and a mysql. Both customers of a pair sit at one machine, which starts the servers.
Where pairs share a machine, each has its own name: type it wherever this page says ` + "`" + Pair + "`" + `.

` + "```console\n" + `$ docker compose --profile servers up --detach --wait redis mysql
$ docker compose exec redis redis-cli                                       # a redis-cli
$ docker compose exec mysql mysql -ustocklock -pdemo-only stocklock         # a mysql
` + "```" + `

Without Docker, ` + "`loadtest exercise --shell`" + ` starts both servers and a shell in which ` + "`redis-cli` and `mysql`" + ` reach them. It says how
more terminals can. In the lab's image: ` + "`docker compose run --rm --name typing lab exercise --shell`" + `, and in another terminal ` + "`docker exec -it typing bash`" + `.

Before each transcript, in any mysql:

` + "```sql\n%s;\n```" + `

The last number is the units: 2 where the transcript says so. To start again, repeat these statements, and ` + "`DEL stock:" + Pair + "`" + ` in
redis-cli. A lease is a minute, so that there is time to type. ` + "`loadtest step STRATEGY --transcript`" + ` prints any other schedule in this form.
Predict first: how many orders are there at the end?
`

func compare(t *testing.T, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("the page is not what was typed (%v): scripts/lab-go.sh test ./internal/lab/transcripttest -update\n%s", err, want)
	}
}

// transcript is a section of the page.
func transcript(k schedule.Kept, units int64, typed []schedule.Line, left, orders int64) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## `%s`, with %d units\n\n```text\n", k.Strategy, units)
	for _, l := range typed {
		fmt.Fprintln(&b, l)
		if l.Event == "" {
			fmt.Fprintf(&b, "  %s\n", l.Answer)
		}
	}
	fmt.Fprintf(&b, "```\n\n<details><summary>The end</summary>\n\nThere are %d orders for %d units, and the stock in MySQL is %d: %s.", orders, units, left, k.Cause.Doc())
	if k.Verdict == verdict.Stuck {
		fmt.Fprintf(&b, " `TTL stock:%s` answers -1.", Pair)
	}
	fmt.Fprintf(&b, "\nIt is the schedule `%s`.\n</details>\n", k.Schedule)
	return strings.ReplaceAll(b.String(), "1 units", "1 unit")
}
