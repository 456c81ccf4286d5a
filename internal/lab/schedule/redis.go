package schedule

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// commands are those whose keys are known, by how many of their arguments are keys: the first, or
// all. Others touch everything.
var commands = map[string]struct {
	does Does
	all  bool
}{}

func init() {
	add := func(does Does, all bool, names string) {
		for name := range strings.FieldsSeq(names) {
			commands[name] = struct {
				does Does
				all  bool
			}{does, all}
		}
	}
	add(Reads, false, "GET TTL PTTL EXPIRETIME PEXPIRETIME HGET HMGET HGETALL HEXISTS HLEN HKEYS HVALS TYPE STRLEN DIGEST LLEN LRANGE LINDEX SCARD "+
		"SISMEMBER SMEMBERS ZCARD ZSCORE ZRANK ZRANGE ZRANGEBYSCORE ZCOUNT XLEN XRANGE GETRANGE GETBIT")
	add(Reads, true, "MGET EXISTS WATCH")
	add(Writes, false, "SET SETNX SETEX PSETEX GETSET GETDEL GETEX DELEX DELIFEQ APPEND INCR DECR INCRBY DECRBY INCRBYFLOAT INCREX EXPIRE PEXPIRE EXPIREAT "+
		"PEXPIREAT PERSIST HSET HSETNX HMSET HDEL HINCRBY LPUSH RPUSH LPOP RPOP LREM LTRIM SADD SREM SPOP ZADD ZREM ZINCRBY ZPOPMIN ZPOPMAX "+
		"ZREMRANGEBYSCORE XADD XACK XDEL XTRIM SETBIT")
	add(Writes, true, "DEL UNLINK")
}

// unread stands for a word with white space, such as the owner of a lock.
const unread = "?"

var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// redisTouches is what a command touches. A script touches the keys that it names.
func redisTouches(r Request) []Touch {
	text := inQuotes.ReplaceAllString(r.Text, unread)
	args := strings.Fields(text)
	if strings.ContainsAny(text, `;"`) || len(args) < 2 {
		if r.Text == "TIME" {
			return nil
		}
		return Everything(r.Server) // more than one command
	}
	var keys []string
	does := Reads | Writes
	switch name := strings.ToUpper(args[0]); name {
	case "EVALSHA", "FCALL":
		if len(args) < 4 {
			return Everything(r.Server)
		}
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 || n > len(args)-3 {
			return Everything(r.Server)
		}
		keys = args[3 : 3+n]
	case "PUBLISH":
		return []Touch{{Server: r.Server, Thing: "channel " + args[1], Does: Writes}}
	default:
		command, known := commands[name]
		if !known {
			return Everything(r.Server)
		}
		keys = args[1:]
		if !command.all {
			keys = keys[:1]
		}
		does = command.does
		if does == Writes && !(name == "SET" && len(args) == 3) { // the answer says what was there
			does |= Reads
		}
	}
	if slices.Contains(keys, unread) {
		return Everything(r.Server)
	}
	var touches []Touch
	for _, k := range keys {
		touches = append(touches, Touch{Server: r.Server, Thing: keyThing + k, Does: does})
	}
	return touches
}
