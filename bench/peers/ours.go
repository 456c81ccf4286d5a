package peers

// Own is this repository's lock, which is compared with the others: a strategy of the lab's shop.
type Own struct {
	Name  string
	Notes map[string]Note
}

// Ours returns this repository's lock, alone and with its token compared by the database.
func Ours() []Own {
	return []Own{
		{Name: "reentrant", Notes: map[string]Note{
			"failover":      lostWrite("a planned failover (FAILOVER, CLUSTER FAILOVER), which waits for the replica, or the token: [fenced](#fenced)"),
			"redis-restart": lostWrite("a Redis that keeps what it has acknowledged (appendonly yes, appendfsync always), or the token: [fenced](#fenced)"),
			"eviction":      lostWrite("maxmemory-policy noeviction, or the token: [fenced](#fenced)"),
			"pause":         notGiven("exclusion over a holder that is paused between its last look at the context and its write.", "the token: [fenced](#fenced)"),
		}},
		{Name: "fenced"},
	}
}

func lostWrite(mend string) Note {
	return notGiven("exclusion when Redis loses a write that it had acknowledged: a restart without data, a failover to a replica that was "+
		"behind, an eviction for want of memory. Two processes can then hold the lock.", mend)
}

func notGiven(says, mend string) Note {
	return Note{Says: says, Where: "[guarantees](guarantees.md), under what the lock does not give", Mend: mend}
}
