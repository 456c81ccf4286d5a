package scenario

// all lists the scenarios in the order of the tables. The doc of the package says what else a new one
// touches.
var all = []Scenario{
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
}
