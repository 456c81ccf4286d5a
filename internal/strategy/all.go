package strategy

import (
	"fmt"
	"slices"
	"strings"
)

// all lists the strategies, from the naive to the strict.
var all = []Strategy{
	none,
	mutex,
	setnx,
	setnxExpire,
	getset,
	setExNx,
	luaSetex,
	ownerGetDel,
	ownerWatch,
	ownerChecked,
	reentrantFixed,
	reentrantTimer,
	reentrant,
	redlock,
	fenced,
	forUpdate,
	optimistic,
	conditional,
}

// All returns the strategies, from the naive to the strict.
func All() []Strategy { return slices.Clone(all) }

// Names returns the names of all strategies.
func Names() []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return names
}

// ByName finds a strategy.
func ByName(name string) (Strategy, error) {
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return Strategy{}, fmt.Errorf("no strategy %q: want one of %s", name, strings.Join(Names(), ", "))
}
