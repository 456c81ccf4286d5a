package scenario

import (
	"slices"

	"stocklock/internal/lab/trial"
)

// all lists the scenarios in the order of the tables: those of one server, of baskets, of reservations, and of the topologies. The doc of
// the package says what else a new one touches.
var all = slices.Concat([]trial.Scenario{
	contention,
	crash,
	crashAcquiring,
	crashAnswered,
	overrun,
	lateRelease,
	splitRelease,
	nested,
	clockSkew,
	partition,
	failover,
	redisRestart,
	eviction,
	pause,
	pageView,
	commitUnanswered,
}, ofBaskets, ofReservations, topologies())
