// Package flags reads the settings of a program. Their ranges are declared once, in the tags min and
// max of kong's struct fields: --help shows the ranges, and [Parse] checks the values.
//
//	Lease time.Duration `default:"10s" min:"50ms" max:"1m" help:"How long a lock lives."`
//	Shops int           `default:"3" min:"1" help:"How many shops sell."`
package flags

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Parse reads args into what settings points to, and checks the ranges. If done, it has printed the
// help or the version instead, and there is nothing to run. It panics where the tags are wrong.
func Parse(settings any, args []string, options ...kong.Option) (parsed *kong.Context, done bool, err error) {
	parser, err := kong.New(settings, append(options, showRanges(), showVersion(),
		kong.WithHyphenPrefixedParameters(true), // so that --lease -1s is a duration out of range, not an unknown flag
		kong.Exit(func(int) { done = true }))...)
	if err != nil {
		panic(err)
	}
	if parsed, err = parser.Parse(args); done {
		return nil, true, nil
	}
	if err == nil {
		err = check(parsed)
	}
	return parsed, false, err
}

// showRanges appends to the help of each flag what its value may be.
func showRanges() kong.Option {
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
			if flag, ok := node.(*kong.Flag); ok {
				if r := rangeOf(flag); r != "" {
					flag.Help = strings.TrimSpace(flag.Help + " Range: " + r + ".")
				}
			}
			return next(nil)
		})
	})
}

// check returns an error that names the first flag whose value is out of its range.
func check(parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		value := flag.Target
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				continue // the default depends on other settings
			}
			value = value.Elem()
		}
		for bound, sign := range map[string]int{"min": -1, "max": 1} {
			if limit := flag.Tag.Get(bound); limit != "" && compare(value, limit) == sign {
				return fmt.Errorf("%s is %v: want %s", name(flag), value.Interface(), rangeOf(flag))
			}
		}
	}
	return nil
}

func name(flag *kong.Flag) string {
	if len(flag.Envs) == 0 {
		return "--" + flag.Name
	}
	return fmt.Sprintf("--%s (%s)", flag.Name, flag.Envs[0])
}

func rangeOf(flag *kong.Flag) string {
	switch lo, hi := flag.Tag.Get("min"), flag.Tag.Get("max"); {
	case lo == "":
		return ""
	case hi == "":
		return lo + " or more"
	default:
		return lo + " to " + hi
	}
}

// compare returns -1, 0 or 1 as the value is below, at or above a limit. A float that is not a
// number is below every minimum. It panics where the tag's limit is not of the value's type.
func compare(value reflect.Value, limit string) int {
	var is, bound float64
	var err error
	switch v := value.Interface().(type) {
	case time.Duration:
		var d time.Duration
		d, err = time.ParseDuration(limit)
		is, bound = float64(v), float64(d)
	default:
		bound, err = strconv.ParseFloat(limit, 64)
		switch {
		case value.CanInt():
			is = float64(value.Int())
		case value.CanUint():
			is = float64(value.Uint())
		default:
			is = value.Float()
		}
	}
	switch {
	case err != nil:
		panic(err)
	case is < bound || is != is:
		return -1
	case is > bound:
		return 1
	}
	return 0
}
