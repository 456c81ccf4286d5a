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
		"SISMEMBER SMEMBERS ZCARD ZSCORE ZRANK ZRANGE ZRANGEBYSCORE ZCOUNT ZREVRANGE ZREVRANGEBYSCORE ZREVRANK "+
		"HSTRLEN SMISMEMBER SRANDMEMBER ZMSCORE XLEN XRANGE XREVRANGE GETRANGE GETBIT BITCOUNT")
	add(Reads, true, "MGET EXISTS WATCH")
	add(Writes, false, "SET SETNX SETEX PSETEX GETSET GETDEL GETEX DELEX DELIFEQ APPEND INCR DECR INCRBY DECRBY INCRBYFLOAT INCREX EXPIRE PEXPIRE EXPIREAT "+
		"PEXPIREAT PERSIST HSET HSETNX HMSET HDEL HINCRBY LPUSH RPUSH LPOP RPOP LREM LTRIM SADD SREM SPOP ZADD ZREM ZINCRBY ZPOPMIN ZPOPMAX "+
		"ZREMRANGEBYSCORE ZREMRANGEBYRANK HINCRBYFLOAT LSET LINSERT LPUSHX RPUSHX XADD XACK XDEL XTRIM SETRANGE SETBIT")
	add(Writes, true, "DEL UNLINK")
}

// unread stands for a word with white space, such as the owner of a lock.
const unread = "?"

var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// redisTouches is what a command touches. A script touches the keys that it is given, and everything where it makes up others.
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
		if len(args) < 4 || r.Foreign && r.Source == "" || !declares(r.Source) {
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

var (
	noCode  = regexp.MustCompile(`(?s)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|--[^\n]*`) // or a string
	long    = regexp.MustCompile(`\[=*\[`)
	api     = regexp.MustCompile(`\b(?:redis|server)\b(\s*\.\s*\w)?`)
	calls   = regexp.MustCompile(`\b(?:redis|server)\s*\.\s*p?call\b`)
	given   = regexp.MustCompile(`^\(\s*['"](\w+)['"]\s*(?:\)|,\s*((?:KEYS\s*\[\s*\w+\s*\]|unpack\s*\(\s*KEYS\s*\)|\w+)(?:\s*,\s*KEYS\s*\[\s*\w+\s*\])*)\s*([,)]))`)
	isRead  = regexp.MustCompile(`#\s*KEYS\b|\b(?:unpack|ipairs)\s*\(\s*KEYS\s*\)|\bKEYS\s*\[`)
	keysSet = regexp.MustCompile(`\bKEYS\s*\[[^=\n]*\]\s*(?:,[^=\n]*)?=[^=]`)
	goesOn  = regexp.MustCompile(`^\s*(?:\.\.|(?:or|and)\b|[-+*/%^<>=~:.(\[{'"])`) // an expression, in the next line
	isGiven = regexp.MustCompile(`\blocal\s+(\w+)\s*=\s*KEYS\s*\[\s*\w+\s*\](\s*)(?:[;\n]|local|if|return|redis|server|$)`)
)

// declares says whether a script calls Redis with the keys that it is given alone, as far as its text shows: each is
// KEYS[n], or a local that is one, of a command whose other arguments are no keys. It is true for no text, as one of the
// repository's own has none.
func declares(source string) bool {
	if !long.MatchString(source) { // in a long comment or string, others may begin that do not end
		source = noCode.ReplaceAllString(source, "$1")
	}
	for _, at := range api.FindAllStringSubmatch(source, -1) {
		if at[1] == "" { // it may be called by another name
			return false
		}
	}
	if keysSet.MatchString(source) || strings.Contains(isRead.ReplaceAllString(source, ""), "KEYS") { // by this or another name
		return false
	}
	var locals []string
	for _, at := range isGiven.FindAllStringSubmatchIndex(source, -1) {
		name := source[at[2]:at[3]]
		again := regexp.MustCompile(`\b` + name + `\s*(?:,[^=\n()]*)?=[^=]|\b(?:function\b[^)]*|for\b[\w\s,]*)\b` + name + `\b`)
		if len(again.FindAllStringIndex(source, 2)) == 1 && !goesOn.MatchString(source[at[5]:]) { // it stays what it was given
			locals = append(locals, name)
		}
	}
	computed := func(argument string) bool {
		return !strings.Contains(argument, "KEYS") && !slices.Contains(locals, strings.TrimSpace(argument))
	}
	for _, at := range calls.FindAllStringIndex(source, -1) {
		call := given.FindStringSubmatch(strings.TrimSpace(source[at[1]:]))
		if call == nil {
			return false
		}
		name, key := strings.ToUpper(call[1]), call[2]
		command, known := commands[name]
		switch {
		case key == "" && name == "TIME":
		case !known && name != "PUBLISH", command.all && call[3] == ",", slices.ContainsFunc(strings.Split(key, ","), computed):
			return false
		}
	}
	return true
}
