package schedule

import (
	"strings"
	"testing"
)

// shop has the tables of a shop, and a lease in a row.
var shop = Schema{
	"items":  {Primary: []string{"id"}, Unique: []string{"id"}, Children: []string{"orders"}},
	"orders": {Primary: []string{"id"}, Unique: []string{"id", "public_id"}, Foreign: []string{"item_id"}, Parents: []string{"items"}},
	"leases": {Primary: []string{"name"}, Unique: []string{"name"}},
}

const (
	readItem   = "SELECT * FROM `items` WHERE `items`.`id` = 7 LIMIT 1"
	writeItem  = "UPDATE items SET stock = stock - 1, version = version + 1 WHERE id = 7 AND stock >= 1"
	otherItem  = "UPDATE items SET stock = 3 WHERE id = 8"
	addOrder   = "INSERT INTO `orders` (`item_id`,`quantity`,`public_id`) VALUES (7,1,'0a')"
	countSold  = "SELECT COUNT(*) FROM orders WHERE item_id = 7"
	bothSums   = "SELECT stock + (SELECT COALESCE(SUM(quantity), 0) FROM orders WHERE item_id = 7) FROM items WHERE id = 7"
	lockItem   = "SELECT stock FROM items WHERE id = 7 FOR UPDATE"
	shareItem  = "SELECT stock FROM items WHERE id = 7 LOCK IN SHARE MODE"
	skipLocked = "SELECT id FROM orders WHERE item_id = 7 LIMIT 1 FOR UPDATE SKIP LOCKED"
	takeLease  = "UPDATE leases SET owner = 'a', ends = NOW(6) + INTERVAL 300000 MICROSECOND WHERE name = 'x7' AND ends < NOW(6)"
	getLock    = "SELECT GET_LOCK('stocklock.stock:7', 1) FOR UPDATE"
	doRelease  = "DO RELEASE_LOCK('stocklock.stock:7')"
)

// TestDependentRequests has, for every rule, two requests whose order can be noticed by it, and two for
// which it does not apply.
func TestDependentRequests(t *testing.T) {
	auto := func(text string) Request { return Request{Server: "mysql", Text: text} }
	tx := func(text string, earlier ...string) Request {
		r := Request{Server: "mysql", Text: text, Tx: true}
		for _, e := range earlier {
			r.Earlier = append(r.Earlier, Statement{e, true})
		}
		return r
	}
	redis := func(text string) Request { return Request{Server: "redis", Text: text} }
	for _, tt := range []struct {
		what string
		a, b Request
		why  string // a part of it, empty for independent requests
	}{
		{"different servers", redis("SET k 1 NX"), auto(writeItem), ""},
		{"a read and a write in Redis", redis("GET k"), redis("SET k 1 NX PX 300"), "a read shows"},
		{"two writes of one key", redis("DEL k"), redis("SET k 1"), "a read shows"},
		{"two keys", redis("GET k"), redis("SET other 1"), ""},
		{"two reads in Redis", redis("GET k"), redis("PTTL k"), ""},
		{"two scripts on a key", redis("EVALSHA a 1 k x"), redis("EVALSHA b 2 j k x"), "a read shows"},
		{"scripts on different keys", redis("EVALSHA a 1 k j"), redis("EVALSHA b 1 j k"), ""},
		{"a script without keys", redis("EVALSHA a 0 j"), redis("GET k"), "a read shows"},
		{"a script that nobody knows", Request{Server: "redis", Text: "EVALSHA a 1 k j", Foreign: true}, redis("GET j"), "a read shows"},
		{"a transaction of Redis", redis("MULTI; DEL k; EXEC"), redis("GET other"), "a read shows"},
		{"a name with white space", redis(`DEL "a k"`), redis("GET k"), "a read shows"},
		{"an unknown command", redis("OBJECT HELP"), redis("GET k"), "a read shows"},
		{"WATCH and a write", redis("WATCH k"), redis("SET k 1"), "a read shows"},
		{"servers of a quorum", Request{Server: "quorum-1", Text: "acquire, as a whole"}, Request{Server: "quorum", Text: "acquire, as a whole"}, "a read shows"},
		{"a first step that nobody has seen", auto(readItem), Request{}, "a read shows"},

		{"two reads in MySQL", auto(readItem), auto(countSold), ""},
		{"a read and an autocommitted UPDATE", auto(readItem), auto(writeItem), "a read shows"},
		{"an autocommitted INSERT and a count", auto(addOrder), auto(countSold), "a read shows"},
		{"a plain read and an open transaction", auto(readItem), tx(writeItem), ""},
		{"a plain read and a COMMIT", auto(readItem), tx("COMMIT", writeItem), "a read shows"},
		{"a plain read and a ROLLBACK", auto(readItem), tx("ROLLBACK", writeItem), ""},
		{"a COMMIT of another table", auto("SELECT owner FROM leases"), tx("COMMIT", writeItem), ""},
		{"a COMMIT of nothing", auto(readItem), tx("COMMIT", readItem), ""},
		{"a COMMIT of an UPDATE that found nothing", auto(readItem), Request{Server: "mysql", Text: "COMMIT", Tx: true, Earlier: []Statement{{writeItem, false}}}, ""},
		{"a COMMIT of an unknown statement that found nothing", auto(readItem), Request{Server: "mysql", Text: "COMMIT", Tx: true, Earlier: []Statement{{"CALL sell(7)", false}}}, "a read shows"},
		{"a COMMIT of an UPDATE that found nothing, and who waits for its lock", tx(lockItem), Request{Server: "mysql", Text: "COMMIT", Tx: true, Earlier: []Statement{{writeItem, false}}}, "has the lock"},
		{"two rows", auto(otherItem), tx(writeItem), ""},
		{"a key that may be another row's", auto("UPDATE items SET id = 7 WHERE id = 8"), tx(writeItem), "a read shows"},
		{"a parent that is deleted", tx("DELETE FROM items WHERE id = 8"), auto("UPDATE leases SET owner = 'b' WHERE name = 'x7'"), "a read shows"},
		{"a key that becomes another row's", tx("UPDATE leases SET name = 'x7' WHERE name = 'x8'"), tx("UPDATE leases SET owner = 'b' WHERE name = 'x7'"), "has the lock"},
		{"an OR beside the key", tx("UPDATE items SET stock = 1 WHERE id = 8 AND version = 1 OR stock = 0"), tx(writeItem), "has the lock"},
		{"a range", tx(lockItem), tx("UPDATE items SET stock = 0 WHERE stock < 0"), "has the lock"},
		{"a locking read and an UPDATE", tx(lockItem), tx(writeItem), "has the lock"},
		{"two shared locks", tx(shareItem), tx(shareItem), ""},
		{"a shared and an exclusive lock", tx(shareItem), tx(writeItem), "shared"},
		{"a ROLLBACK and who waits for its lock", tx("ROLLBACK", writeItem), tx(lockItem), "has the lock"},
		{"a foreign key and its parent", tx(addOrder), tx(writeItem), "shared"},
		{"a gap and a new row", tx("SELECT COUNT(*) FROM orders WHERE item_id = 7 FOR UPDATE"), tx(addOrder), "gap"},
		{"a count under SERIALIZABLE and a new row", tx(countSold).Serializable(), tx(addOrder), "gap"},
		{"two counts under SERIALIZABLE", tx(countSold).Serializable(), tx(countSold).Serializable(), ""},
		{"a locking read under SERIALIZABLE", tx(lockItem).Serializable(), tx(lockItem).Serializable(), "has the lock"},
		{"a write under SERIALIZABLE", Request{Server: "mysql", Text: writeItem, Tx: true, Isolation: "Serializable"}.Serializable(), tx(otherItem), ""},
		{"two INSERTs", tx(addOrder), tx(addOrder), "ids"},
		{"the first read of a transaction and any COMMIT", tx(readItem), tx("COMMIT", addOrder), "a read shows"},
		{"a read after the first", tx(countSold, readItem), tx("COMMIT", addOrder), ""},
		{"the same under READ COMMITTED", Request{Server: "mysql", Text: countSold, Tx: true, Isolation: "Read Committed", Earlier: []Statement{{readItem, true}}}, tx("COMMIT", addOrder), "a read shows"},
		{"a read after one that no row can meet", tx(countSold, "SELECT COUNT(*) FROM orders WHERE 0 = 1"), tx("COMMIT", addOrder), "a read shows"},
		{"a read after one of a table that keeps no snapshot", tx(countSold, "SELECT * FROM seq_1_to_10"), tx("COMMIT", addOrder), "a read shows"},
		{"a read after a locking read", tx(countSold, lockItem), tx("COMMIT", addOrder), "a read shows"},
		{"SKIP LOCKED and a lock", tx(skipLocked), tx("DELETE FROM orders WHERE id = 3"), "has the lock"},
		{"who asks for a named lock", auto("SELECT IS_FREE_LOCK('stocklock.stock:7')"), auto(getLock), "does not wait"},
		{"a named lock and another", auto("SELECT IS_FREE_LOCK('other')"), auto(getLock), ""},
		{"a named lock and its release", auto(getLock), auto(doRelease), "has the lock"},
		{"two who take it", auto(getLock), auto(getLock), "has the lock"},
		{"a named lock and a row", auto(getLock), auto(writeItem), ""},
		{"a function that is not known", auto("SELECT sold(7)"), auto(writeItem), "a read shows"},
		{"a table that is not known", auto("UPDATE notes SET a = 1"), auto(readItem), "a read shows"},
		{"a word that is not known", auto("TRUNCATE items"), auto(readItem), "a read shows"},
		{"a subquery that is a table", auto("SELECT stock FROM items WHERE id IN (TABLE picks)"), auto("UPDATE leases SET owner = 'b' WHERE name = 'x7'"), "a read shows"},
		{"a subquery of an UPDATE", auto("UPDATE leases SET owner = 'b' WHERE name = 'x7' AND 0 < (SELECT stock FROM items WHERE id = 7)"), auto("SELECT COUNT(*) FROM orders"), "a read shows"},
		{"a sum of two tables and a read", auto(bothSums), auto(readItem), ""},
		{"a sum of two tables and a table beside them", auto(bothSums), tx("COMMIT", takeLease), ""},
		{"a sum of two tables and the outer one", auto(bothSums), tx("COMMIT", writeItem), "a read shows"},
		{"a sum of two tables and the inner one", auto(bothSums), tx("COMMIT", addOrder), "a read shows"},
		{"a sum of two tables after a read", tx(bothSums, readItem), tx("COMMIT", addOrder), ""},
		{"a sum of two tables under SERIALIZABLE", tx(bothSums).Serializable(), tx(addOrder), "gap"},
		{"a SELECT of nothing but a subquery under SERIALIZABLE", tx("SELECT EXISTS (SELECT 1 FROM orders WHERE item_id = 7)").Serializable(), tx(addOrder), "gap"},
		{"a COMMIT after a function in a subquery", auto(readItem), tx("COMMIT", "SELECT (SELECT sold(7))"), "a read shows"},
		{"EXISTS and a table beside it", auto("SELECT 1 FROM items WHERE EXISTS (SELECT 1 FROM orders)"), tx("COMMIT", takeLease), ""},
		{"a row that the outer table names", auto("SELECT 1 FROM items WHERE EXISTS (SELECT 1 FROM leases WHERE items.name = 'x7')"), auto("UPDATE leases SET owner = 'b' WHERE name = 'x8'"), "a read shows"},
		{"a subquery in a subquery", auto("SELECT 1 FROM items WHERE id IN (SELECT item_id FROM orders WHERE id IN (SELECT id FROM leases))"), auto("UPDATE leases SET owner = 'b'"), "a read shows"},
		{"a subquery that takes a lock", tx("SELECT (SELECT stock FROM items WHERE id = 7 FOR UPDATE)"), tx(writeItem), "has the lock"},
		{"a subquery that is not understood", auto("SELECT (SELECT sold(7))"), auto(readItem), "a read shows"},
		{"a read after an empty list of another mapper", tx(countSold, "SELECT COUNT(*) FROM orders WHERE item_id IN (NULL) AND (1 != 1)"), tx("COMMIT", addOrder), "a read shows"},
		{"a condition of groups", tx("SELECT id FROM items WHERE stock > 0 HAVING stock > 1 AND id = 8 FOR UPDATE"), tx(writeItem), "has the lock"},
		{"a read after a subquery that no row can meet", tx(countSold, "SELECT COUNT(*) FROM items WHERE id IN (SELECT item_id FROM orders WHERE 0 = 1)"), tx("COMMIT", addOrder), "a read shows"},
		{"a lock with a wait of its own", tx("SELECT stock FROM items WHERE id = 7 ORDER BY id FOR UPDATE WAIT 5"), tx(writeItem), "a read shows"},
		{"a key inside of a call", tx("UPDATE items SET stock = 1 WHERE IF(stock AND id = 8 AND version, 1, 0)"), tx(writeItem), "has the lock"},
		{"a text that looks like a statement", auto("UPDATE leases SET owner = ' (SELECT stock FROM items)' WHERE name = 'x7'"), tx("COMMIT", writeItem), ""},
		{"a transaction that reads what is not committed", Request{Server: "mysql", Text: readItem, Tx: true, Isolation: "Read Uncommitted"}, tx(writeItem), "a read shows"},
	} {
		a, b := shop.Touches(tt.a), shop.Touches(tt.b)
		for _, why := range []string{Dependent(a, b), Dependent(b, a)} {
			if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("%s: %q, want %q, both ways: %+v, %+v", tt.what, why, tt.why, a, b)
			}
		}
	}
}

// TestAStatementThatAsksForTheTime depends on a lease that passes, and one that does not is independent.
func TestAStatementThatAsksForTheTime(t *testing.T) {
	passes := []Touch{{Server: "mysql", Thing: Clock, Does: Writes}}
	for text, want := range map[string]bool{takeLease: true, writeItem: false, addOrder: false, "SELECT 1 FROM leases WHERE ends > CURRENT_TIMESTAMP": true} {
		if got := Dependent(passes, shop.Touches(Request{Server: "mysql", Text: text})) != ""; got != want {
			t.Errorf("%s depends on the time: %t, want %t", text, got, want)
		}
	}
}

// TestWhoWaits: what may wait is sent and looked at; what waits for certain is left for later.
func TestWhoWaits(t *testing.T) {
	for _, tt := range []struct {
		what, wanted, held string
		unmatched          bool
		may, must          bool
	}{
		{"one row", writeItem, writeItem, false, true, true},
		{"one row, by a locking read", lockItem, writeItem, false, true, true},
		{"a shared lock on what is written", shareItem, writeItem, false, true, true},
		{"an UPDATE that found nothing can hold nothing", writeItem, writeItem, true, true, false},
		{"an aggregate that may have found nothing", "SELECT COUNT(*) FROM items WHERE id = 7 FOR UPDATE", "SELECT COUNT(*) FROM items WHERE id = 7 FOR UPDATE", false, true, false},
		{"who holds a shared lock can want more", writeItem, shareItem, false, true, false},
		{"two shared locks", shareItem, shareItem, false, false, false},
		{"another row", otherItem, writeItem, false, false, false},
		{"an INSERT has its row before it waits", addOrder, writeItem, false, true, false},
		{"NOW() is the time at which it is sent", takeLease, "UPDATE leases SET owner = '' WHERE name = 'x7'", false, true, false},
		{"who skips", skipLocked, "DELETE FROM orders WHERE id = 3", false, false, false},
		{"a plain read", readItem, writeItem, false, false, false},
		{"a named lock", getLock, getLock, false, true, true},
		{"a named lock that may not be asked for", "SELECT IF(0, (SELECT GET_LOCK('stocklock.stock:7', 5)), 1)", getLock, false, true, false},
		{"one that is only tried", "SELECT GET_LOCK('stocklock.stock:7', 0)", getLock, false, false, false},
		{"one whose wait MySQL rounds to none, and MariaDB does not", "SELECT GET_LOCK('stocklock.stock:7', 0.4)", getLock, false, true, false},
		{"an unknown statement", "CALL sell(7)", writeItem, false, true, false},
	} {
		held := []Statement{{tt.held, !tt.unmatched}}
		wanted := Request{Server: "mysql", Text: tt.wanted, Tx: true}
		if may, must := shop.MayWait(wanted, held), shop.MustWait(wanted, held); may != tt.may || must != tt.must {
			t.Errorf("%s: may wait %t, must %t, want %t, %t", tt.what, may, must, tt.may, tt.must)
		}
	}
}

// FuzzTouches: no text makes it panic.
func FuzzTouches(f *testing.F) {
	for _, text := range []string{readItem, writeItem, addOrder, takeLease, getLock, "UPDATE", "INSERT INTO", "SELECT FROM a,", "GET_LOCK(", "' \" ` -- /*"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, server := range []string{"mysql", "redis"} {
			shop.Touches(Request{Server: server, Text: text, Tx: true, Earlier: []Statement{{text, true}}})
		}
	})
}

// TestScriptsThatMakeUpKeys: a script touches the keys that it is given, unless its text shows others.
func TestScriptsThatMakeUpKeys(t *testing.T) {
	for source, declared := range map[string]bool{
		"": true,
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0":                          true,
		"local key = KEYS[1]\nredis.call(\"PEXPIRE\", key, ARGV[1]) return redis.call('TIME')":                                  true,
		"return redis.call('DEL', KEYS[1], KEYS[2])":                                                                            true,
		"local stock = 'stock'\nreturn redis.call('HINCRBY', stock, KEYS[1], -1)":                                               false,
		"return redis.call('DEL', other, KEYS[1])":                                                                              false,
		"local key = KEYS[1]\nreturn redis.call('HINCRBY', key, KEYS[2], -1)":                                                   true,
		"local key = KEYS[1]\n  .. ':stock'\nreturn redis.call('DECR', key)":                                                    false,
		"local key = KEYS[1]\n  or ARGV[1]\nreturn redis.call('DECR', key)":                                                     false,
		"return redis.call('DEL', unpack(KEYS))":                                                                                true,
		"redis.call('sadd', KEYS[1], ARGV[2]) return redis.call('decr', 'stock:'..ARGV[1])":                                     false,
		"return redis.call('DEL', KEYS[1], 'lock:'..ARGV[1])":                                                                   false,
		"local key = KEYS[1] .. ':x'\nreturn redis.call('GET', key)":                                                            false,
		"local key = KEYS[1]\nkey = key .. ':x'\nreturn redis.call('GET', key)":                                                 false,
		"local key = KEYS[1]\nlocal n, key = 1, 'x'\nreturn redis.call('GET', key)":                                             false,
		"local key = KEYS[1]\nlocal function get(key) return redis.call('GET', key) end return get('x')":                        false,
		"local key = KEYS[1]\nfor key in pairs(ARGV) do redis.call('GET', key) end":                                             false,
		"local key = KEYS[1]\nif key == ARGV[1] then redis.call('GET', key) end":                                                true,
		"KEYS[1] = 'x' return redis.call('GET', KEYS[1])":                                                                       false,
		"local all = KEYS all[1] = 'x' return redis.call('GET', KEYS[1])":                                                       false,
		"KEYS[ARGV[1]] = 'x' return redis.call('GET', KEYS[1])":                                                                 false,
		"KEYS[tonumber(ARGV[1])] = 'x' return redis.call('GET', KEYS[1])":                                                       false,
		"local n, all = 1, KEYS return redis.call('GET', KEYS[1])":                                                              false,
		"change(KEYS) return redis.call('GET', KEYS[1])":                                                                        false,
		"local t = {} KEYS[1], t[1] = 'x', 2 return redis.call('GET', KEYS[1])":                                                 false,
		"local key = KEYS[1]\nlocal t = {}\nkey, t[1] = 'x', 2\nreturn redis.call('GET', key)":                                  false,
		"if #KEYS == 2 then return redis.call('DEL', KEYS[2]) end":                                                              true,
		"if KEYS[1] == KEYS[2] then return redis.call('DEL', KEYS[1]) end":                                                      true,
		"return redis.call('GET', KEYS[1] .. ':x')":                                                                             false,
		"return redis.pcall(ARGV[1], KEYS[1])":                                                                                  false,
		"local call = redis.call return call('GET', 'x')":                                                                       false,
		"return redis.call('SMOVE', KEYS[1], 'sold', ARGV[1])":                                                                  false,
		"return redis.call('RENAME', KEYS[1], ARGV[1])":                                                                         false,
		"return server.call('GET', 'x')":                                                                                        false,
		"return server.call('GET', KEYS[1])":                                                                                    true,
		"local r = redis return r.call('GET', 'x')":                                                                             false,
		"local r = redis\n.call('GET', KEYS[1])":                                                                                true,
		"local r = server; return r.call('GET', 'x')":                                                                           false,
		"return redis['call']('GET', 'x')":                                                                                      false,
		"-- redis' own clock\nif redis.call('GET', KEYS[1]) then return redis.error_reply('--') end":                            true,
		"if ARGV[1] == '--' then local r = redis return r.call('GET', 'x') end":                                                 false,
		"--[=[ x ]=] return redis.call('GET', 'x')":                                                                             false,
		"--[[ it's ]] local r = redis return r.call('GET', 'x') -- it's":                                                        false,
		"redis.call('hincrby', KEYS[1], ARGV[1], -1) return redis.call('publish', KEYS[2], cjson.encode({redis.sha1hex('a')}))": true,
	} {
		touches := Schema{}.Touches(Request{Server: "redis", Text: "EVALSHA 1 1 lock:1 a", Source: source})
		if _, named := touches[0].Key(); named != declared {
			t.Errorf("%q touches %+v", source, touches)
		}
	}
}

// TestWhoIsHeld by the next step of another customer: not by one who has ended, and keeps what it holds.
func TestWhoIsHeld(t *testing.T) {
	write := []Statement{{writeItem, true}}
	for _, tt := range []struct {
		what   string
		holder Party
		want   bool
	}{
		{"who can go on", Party{Held: write, AtStep: true}, true},
		{"who waits for something else", Party{Held: write}, true},
		{"who is waited for in a circle", Party{Held: write, AtStep: true, Waiting: true}, false},
		{"who has ended", Party{Held: write, Ended: true}, false},
		{"who has ended, by a named lock", Party{Held: []Statement{{getLock, true}}, Ended: true}, false},
	} {
		for _, next := range []string{lockItem, getLock} {
			all := []Party{tt.holder, {Next: Request{Server: "mysql", Text: next, Tx: true}, AtStep: true}}
			if got := shop.IsHeld(1, all); got != (tt.want && next == lockItem) {
				t.Errorf("%s: %s is held: %t", tt.what, next, got)
			}
		}
	}
}
