// Package schedule plays sales request by request, in a chosen order, and explores all orders.
//
// A [Stage] has one shop for each customer, so that customers share only Redis and MySQL. The shops
// hold every request of a sale until the stage lets it go. A [Schedule] is a text of steps and
// events, such as "A.set wait B.set". [Stage.PlaySchedule] plays one on a fresh item and returns a
// [Record]: the requests, the answers, and the state of the servers after each step.
//
// [Explore] plays all schedules of a [Search], each from its beginning. docs/schedules.md says what
// it leaves out and why nothing is lost by that. It also defines the [Cause] of a failure. A
// strategy's declaration says what an exploration must find: see [Expected].
//
// # Files
//
//   - schedule.go, event.go: the text
//   - seat.go: the connection to the shops
//   - stage.go, lane.go: servers and shops
//   - run.go, send.go, happen.go, settle.go, options.go, why.go, tenure.go, conclude.go: one run
//   - explore.go, independent.go: the search
//   - cause.go, expect.go, judgement.go, survey.go, shrink.go: the conclusions
//   - draw.go: the drawing
package schedule
