package wirestage

import (
	"errors"
	"fmt"
	"strings"

	"stocklock/internal/lab/schedule"
)

// whoWaits says what each customer waits for.
func (r *run) whoWaits() string {
	var who []string
	for _, b := range r.buyers {
		if b.state == ended {
			continue
		}
		what := map[state]string{moving: "works", onRow: "waits in MySQL", onRedis: "waits in Redis", onPush: "waits for a message"}[b.state]
		switch {
		case b.flying != nil:
			what += " with " + b.flying.Text
		case len(b.queue) > 0:
			what = "is held at " + b.queue[0].Text
		case b.state == moving:
			what += " and sends nothing"
		}
		who = append(who, fmt.Sprintf("%s %s", b.customer, what))
	}
	return strings.Join(who, ", ")
}

// why says why a choice cannot be.
func (r *run) why(c schedule.Choice) string {
	if c.Customer == 0 {
		return fmt.Sprintf("%s cannot be here", c)
	}
	if int(c.Customer-'A') >= len(r.buyers) {
		return fmt.Sprintf("%s: there is no customer %s", c, c.Customer)
	}
	b := r.buyer(c.Customer)
	switch {
	case b.state == ended:
		return fmt.Sprintf("%s cannot be here: %s has ended: it was answered with %s", c, b.customer, b.reply)
	case b.atStep():
		return fmt.Sprintf("%s cannot be here: %s's next step is %s.%s", c, b.customer, b.customer, b.step())
	}
	return fmt.Sprintf("%s cannot be here: %s", c, r.whoWaits())
}

var errSilent = errors.New("a process sends nothing, and nothing of it is under way")
