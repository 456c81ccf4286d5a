package explore

import (
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/shop/labmode"
)

// independent says whether two choices can change places without anybody noticing. They are of
// different customers and follow each other. Steps on different servers are; so are two that only
// read, and an INSERT beside anything of another customer. An event is independent of what is sent
// to a server that it does nothing to; where the strategy goes by a clock of its own, of nothing
// while a lease passes.
func independent(a, b stage.Option, localClock bool) bool {
	if a.Choice.Customer == b.Choice.Customer && a.Choice.Customer != 0 {
		return false
	}
	switch {
	case a.Choice.IsStep() && b.Choice.IsStep():
		if a.Request.Server == "" || b.Request.Server == "" { // a first step that nobody has seen yet
			return false
		}
		if a.Request.Server != b.Request.Server {
			return true
		}
		one, other := a.Request.Access(), b.Request.Access()
		return one == schedule.Reads && other == schedule.Reads || one == schedule.Inserts || other == schedule.Inserts
	case !a.Choice.IsStep() && !b.Choice.IsStep():
		return false
	case a.Choice.IsStep():
		a, b = b, a
	}
	switch a.Choice.Event { // a is the event, b the step of another customer
	case schedule.Arrive, schedule.Lose:
		return true
	case schedule.Kill: // its connection to MySQL ends, and with it its transaction
		return b.Request.Server != labmode.MySQLServer
	case schedule.Forget, schedule.FlushAll, schedule.Failover:
		return b.Request.Server == labmode.MySQLServer
	default:
		return b.Request.Server == labmode.MySQLServer && !localClock
	}
}
