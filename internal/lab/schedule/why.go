package schedule

import (
	"fmt"
	"strings"

	"stocklock/internal/shop/labmode"
)

// serverName is the name of a server for people.
func serverName(server string) string {
	if server == labmode.EtcdServer {
		return server
	}
	return "Redis"
}

func (r *run) whoWaits() string {
	var who []string
	for _, p := range r.people {
		if p.state == ended || p.state == absent {
			continue
		}
		what := map[state]string{moving: "works after", atStep: "is held at", onRow: "waits for a row with", onLock: "waits for the lock after", inPeace: "has no answer to"}[p.state]
		who = append(who, fmt.Sprintf("%s %s %s", p.customer, what, p.step))
	}
	return strings.Join(who, ", ")
}

// why says why a choice cannot be.
func (r *run) why(c Choice) string {
	cannot := func(format string, args ...any) string {
		return fmt.Sprintf("%s cannot be here: ", c) + fmt.Sprintf(format, args...)
	}
	if why := Inapplicable(r.of, c.Event); why != "" {
		return cannot("%s", why)
	}
	if c.Customer == 0 {
		return cannot("everyone has ended")
	}
	if int(c.Customer-'A') >= len(r.people) {
		return fmt.Sprintf("%s: there is no customer %s: this run has %s to %s", c, c.Customer, r.people[0].customer, r.people[len(r.people)-1].customer)
	}
	p := r.person(c.Customer)
	switch {
	case p.state == ended:
		return cannot("%s has ended: it was answered with %s", p.customer, p.answer)
	case !c.IsStep() && c.Event == Arrive:
		return cannot("%s has come already", p.customer)
	case !c.IsStep() && p.state == absent:
		return cannot("%s has not come yet", p.customer)
	case p.state == absent:
		return cannot("%s's next step is %s", p.customer, Choice{Customer: p.customer, Step: r.stage.firstStep(r.plan.Strategy).step})
	case p.state == atStep:
		return cannot("%s's next step is %s", p.customer, Choice{Customer: p.customer, Step: p.step})
	case p.state == onRow:
		return cannot("%s waits for the row", p.customer)
	case p.state == onLock:
		return cannot("%s waits for the lock", p.customer)
	}
	return cannot("%s waits for %s", p.customer, serverName(p.held.Server))
}
