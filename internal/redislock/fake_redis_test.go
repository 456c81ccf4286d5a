package redislock

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// store is a Redis in small, for one lock: the commands that the scripts use, on a clock that
// stands still. The model runs the shipped scripts on it. TestStoreIsLikeRedis compares it with a
// real server, command by command.
type store struct {
	now     int64 // in microseconds
	strings map[string]string
	zsets   map[string]map[string]float64
	hashes  map[string]map[string]string
	ttls    map[string]int64 // milliseconds; a key without one stays

	counted   func(channel string) int64 // as PUBSUB NUMSUB does
	published func(channel, message string) (n int64)
}

func newStore(now int64) *store {
	return &store{now: now, strings: map[string]string{}, zsets: map[string]map[string]float64{}, hashes: map[string]map[string]string{}, ttls: map[string]int64{},
		counted: func(string) int64 { return 0 }, published: func(string, string) int64 { return 0 }}
}

// commandError is an error reply.
type commandError string

const wrongType commandError = "WRONGTYPE Operation against a key holding the wrong kind of value"

func (s *store) exists(key string) bool {
	_, isString := s.strings[key]
	return isString || s.zsets[key] != nil || s.hashes[key] != nil
}

func (s *store) delete(key string) {
	delete(s.strings, key)
	delete(s.zsets, key)
	delete(s.hashes, key)
	delete(s.ttls, key)
}

// do carries out one command. The reply is an int64, a string, nil, a list of these, or a
// commandError.
func (s *store) do(args ...string) any {
	key := ""
	if len(args) > 1 {
		key = args[1]
	}
	_, isString := s.strings[key]
	switch name := args[0]; {
	case name == "GET" && (s.zsets[key] != nil || s.hashes[key] != nil),
		strings.HasPrefix(name, "Z") && (isString || s.hashes[key] != nil),
		strings.HasPrefix(name, "H") && (isString || s.zsets[key] != nil),
		name == "SET" && slices.Contains(args, "GET") && s.exists(key) && !isString:
		return wrongType
	}
	switch args[0] {
	case "TIME":
		return []any{strconv.FormatInt(s.now/1e6, 10), strconv.FormatInt(s.now%1e6, 10)}
	case "GET":
		return orNil(s.strings, key)
	case "SET":
		old := orNil(s.strings, key)
		s.delete(key)
		s.strings[key] = args[2]
		if i := slices.Index(args, "PX"); i > 0 {
			s.ttls[key], _ = strconv.ParseInt(args[i+1], 10, 64)
		}
		if slices.Contains(args, "GET") {
			return old
		}
		return "OK"
	case "DEL", "EXISTS":
		n := int64(0)
		for _, k := range args[1:] {
			if s.exists(k) {
				n++
				if args[0] == "DEL" {
					s.delete(k)
				}
			}
		}
		return n
	case "PEXPIRE":
		if !s.exists(key) {
			return int64(0)
		}
		s.ttls[key], _ = strconv.ParseInt(args[2], 10, 64)
		return int64(1)
	case "PTTL":
		ttl, is := s.ttls[key]
		switch {
		case !s.exists(key):
			return int64(-2)
		case !is:
			return int64(-1)
		}
		return ttl
	case "PUBLISH":
		return s.published(args[1], args[2])
	case "PUBSUB":
		return []any{args[2], s.counted(args[2])}
	case "ZADD":
		score, _ := strconv.ParseFloat(args[len(args)-2], 64)
		member := args[len(args)-1]
		old, is := s.zsets[key][member]
		if s.zsets[key] == nil {
			s.zsets[key] = map[string]float64{}
		}
		if !is || args[2] != "LT" || score < old {
			s.zsets[key][member] = score
		}
		return asInt(!is)
	case "ZREM":
		_, is := s.zsets[key][args[2]]
		if delete(s.zsets[key], args[2]); len(s.zsets[key]) == 0 {
			s.delete(key)
		}
		return asInt(is)
	case "ZCARD":
		return int64(len(s.zsets[key]))
	case "ZRANK":
		if i := slices.Index(s.order(key), args[2]); i >= 0 {
			return int64(i)
		}
		return nil
	case "ZRANGE":
		order := s.order(key)
		from, _ := strconv.Atoi(args[2])
		to, _ := strconv.Atoi(args[3])
		reply := []any{}
		for i := from; i <= to && i < len(order); i++ {
			reply = append(reply, order[i])
		}
		return reply
	case "HGET":
		return orNil(s.hashes[key], args[2])
	case "HMGET":
		reply := []any{}
		for _, field := range args[2:] {
			reply = append(reply, orNil(s.hashes[key], field))
		}
		return reply
	case "HSET":
		_, is := s.hashes[key][args[2]]
		if s.hashes[key] == nil {
			s.hashes[key] = map[string]string{}
		}
		s.hashes[key][args[2]] = args[3]
		return asInt(!is)
	case "HDEL":
		_, is := s.hashes[key][args[2]]
		if delete(s.hashes[key], args[2]); len(s.hashes[key]) == 0 {
			s.delete(key)
		}
		return asInt(is)
	case "HLEN":
		return int64(len(s.hashes[key]))
	case "HKEYS":
		reply := []any{}
		for _, field := range slices.Sorted(maps.Keys(s.hashes[key])) {
			reply = append(reply, field)
		}
		return reply
	}
	panic("the store does not know " + args[0])
}

func orNil(m map[string]string, key string) any {
	if v, is := m[key]; is {
		return v
	}
	return nil
}

func asInt(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// order has the members of a sorted set as Redis has them: by score, and then by name.
func (s *store) order(key string) []string {
	set := s.zsets[key]
	members := slices.Sorted(maps.Keys(set))
	slices.SortStableFunc(members, func(a, b string) int {
		switch {
		case set[a] < set[b]:
			return -1
		case set[a] > set[b]:
			return 1
		}
		return 0
	})
	return members
}

// interpreter runs scripts on stores.
type interpreter struct {
	state    *lua.LState
	compiled map[string]*lua.FunctionProto
	store    *store
}

func newInterpreter() *interpreter {
	i := &interpreter{state: lua.NewState(), compiled: map[string]*lua.FunctionProto{}}
	call := func(raise bool) lua.LGFunction {
		return func(L *lua.LState) int {
			args := make([]string, L.GetTop())
			for n := range args {
				args[n] = argument(L.Get(n + 1))
			}
			reply := i.store.do(args...)
			if text, failed := reply.(commandError); failed && raise {
				L.RaiseError("%s", string(text))
			}
			L.Push(toLua(L, reply))
			return 1
		}
	}
	i.state.SetGlobal("redis", i.state.SetFuncs(i.state.NewTable(), map[string]lua.LGFunction{"call": call(true), "pcall": call(false)}))
	return i
}

// argument is what Redis makes of an argument in a script.
func argument(v lua.LValue) string {
	if n, is := v.(lua.LNumber); is {
		return strconv.FormatFloat(float64(n), 'g', 17, 64)
	}
	return v.String()
}

func toLua(L *lua.LState, reply any) lua.LValue {
	switch v := reply.(type) {
	case nil:
		return lua.LFalse
	case int64:
		return lua.LNumber(v)
	case commandError:
		t := L.NewTable()
		t.RawSetString("err", lua.LString(v))
		return t
	case string:
		return lua.LString(v)
	}
	t := L.NewTable()
	for _, element := range reply.([]any) {
		t.Append(toLua(L, element))
	}
	return t
}

func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(v)
	case lua.LString:
		return string(v)
	case *lua.LTable:
		list := []any{}
		for n := 1; n <= v.Len(); n++ {
			list = append(list, fromLua(v.RawGetInt(n)))
		}
		return list
	}
	return nil
}

// run runs a script with the number of its keys, the keys and what else it takes, and returns its
// reply.
func (i *interpreter) run(s *store, source string, args []any) (any, error) {
	proto := i.compiled[source]
	if proto == nil {
		chunk, err := parse.Parse(strings.NewReader(source), "script")
		if err != nil {
			return nil, err
		}
		if proto, err = lua.Compile(chunk, "script"); err != nil {
			return nil, err
		}
		i.compiled[source] = proto
	}
	i.store = s
	list := func(values []string) *lua.LTable {
		t := i.state.NewTable()
		for _, v := range values {
			t.Append(lua.LString(v))
		}
		return t
	}
	all := make([]string, len(args)-1)
	for n, arg := range args[1:] {
		all[n] = fmt.Sprint(arg)
	}
	keys := args[0].(int)
	i.state.SetGlobal("KEYS", list(all[:keys]))
	i.state.SetGlobal("ARGV", list(all[keys:]))
	i.state.Push(i.state.NewFunctionFromProto(proto))
	if err := i.state.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	reply := i.state.Get(-1)
	i.state.Pop(1)
	return fromLua(reply), nil
}

// TestStoreIsLikeRedis sends random commands to the store and to a real server, each through a
// script, and wants the same replies.
func TestStoreIsLikeRedis(t *testing.T) {
	t.Parallel()
	server, err := startServer()
	must(t, err)
	t.Cleanup(server.stop)
	client, _ := newClient(t, server.addr)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	key := func() string { return one("a", "b") }
	member := func() string { return one("x", "y", "z") }
	const source = "return redis.pcall(unpack(ARGV))"
	mine, lua := newStore(1), newInterpreter()
	for range 20000 {
		score := fmt.Sprint(random.IntN(4))
		choices := [][]string{
			{"GET", key()}, {"SET", key(), score, "PX", "60000"}, {"SET", key(), score, "PX", "60000", "GET"}, {"DEL", key()}, {"EXISTS", "a", "b"},
			{"PEXPIRE", key(), "60000"}, {"ZADD", key(), score, member()}, {"ZADD", key(), "LT", score, member()}, {"ZREM", key(), member()},
			{"ZCARD", key()}, {"ZRANK", key(), member()}, {"ZRANGE", key(), "0", "0"}, {"ZRANGE", key(), "1", "1"}, {"HGET", key(), member()},
			{"HMGET", key(), "x", "y"}, {"HSET", key(), member(), score}, {"HDEL", key(), member()}, {"HLEN", key()}, {"PUBLISH", "c", "m"}, {"PUBSUB", "NUMSUB", "c"},
		}
		command := choices[random.IntN(len(choices))]
		args := make([]any, len(command))
		for i, arg := range command {
			args[i] = arg
		}
		got, err := lua.run(mine, source, append([]any{0}, args...))
		must(t, err)
		want, err := client.Eval(t.Context(), source, nil, args...).Result()
		if _, refused := err.(interface{ RedisError() }); refused && strings.HasPrefix(err.Error(), "WRONGTYPE") {
			want = []any{} // an error in a table has no elements
		}
		if fmt.Sprint(got) != fmt.Sprint(want) && !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: %v, a real server says %v", command, got, want)
		}
		for _, k := range []string{"a", "b"} {
			has, ttl := client.Exists(t.Context(), k).Val() == 1, client.PTTL(t.Context(), k).Val()
			if ttls := mine.do("PTTL", k).(int64); mine.exists(k) != has || has && (ttls > 0) != (ttl > 0) {
				t.Fatalf("after %v: %s exists: %v, lives for %d; a real server has %v, %s", command, k, mine.exists(k), ttls, has, ttl)
			}
		}
	}
}
