package report

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode"
)

// largest is far beyond any number of a run. Numbers below it can be drawn.
const largest = 1e12

// clean replaces the control characters in every string within v, and checks that numbers can be
// drawn. With lines, line ends are kept.
func clean(v reflect.Value, lines bool) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return clean(v.Elem(), lines)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if err := clean(value, name == "reason" || name == "spoiled"); err != nil {
				return fmt.Errorf(".%s%w", cmp.Or(name, strings.ToLower(field.Name)), err)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := clean(v.Index(i), lines); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
		}
	case reflect.Map:
		return cleanMap(v)
	case reflect.String:
		v.SetString(cleanText(v.String(), lines))
	case reflect.Float64:
		if math.Abs(v.Float()) > largest {
			return fmt.Errorf(" is %g, want at most %g", v.Float(), largest)
		}
	}
	return nil
}

// cleanMap replaces the entries by clean copies: an entry of a map cannot be set.
func cleanMap(m reflect.Value) error {
	for _, key := range m.MapKeys() {
		value := reflect.New(m.Type().Elem()).Elem()
		value.Set(m.MapIndex(key))
		if err := clean(value, false); err != nil {
			return fmt.Errorf(".%s%w", key, err)
		}
		m.SetMapIndex(key, reflect.Value{})
		m.SetMapIndex(reflect.ValueOf(cleanText(key.String(), false)).Convert(key.Type()), value)
	}
	return nil
}

func cleanText(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines:
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
