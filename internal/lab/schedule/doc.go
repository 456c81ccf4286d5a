// Package schedule plays sales request by request, in an order that is chosen, and explores all
// orders.
//
// A [Stage] has shops that hold every request of a sale until they are told to go on: one shop for
// each customer, so that nothing is shared but Redis and MySQL. A [Schedule] is a text such as
// "A.set wait B.set": steps and events. [Stage.PlaySchedule] plays one on a fresh item and returns
// a [Record]: what was sent, what the servers answered, and what they had after each step, by a
// look at the servers themselves.
//
// [Explore] plays all schedules of a [Search], each from its beginning. What it leaves out, and why
// nothing is lost by it, is in docs/schedules.md; so is what counts as the [Cause] of a failure.
// What an exploration must find follows from what a strategy declares: see [Expected].
//
// # Files
//
// schedule.go, event.go: the text. seat.go: the connection to the shops. stage.go, lane.go: servers
// and shops. run.go, send.go, happen.go, settle.go, options.go, why.go, tenure.go, conclude.go: one run. explore.go,
// independent.go: the search. cause.go, expect.go, judgement.go, survey.go, shrink.go: what is
// concluded. draw.go: how it looks.
package schedule
