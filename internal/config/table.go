package config

import (
	"reflect"
	"strconv"
	"time"

	"envapi/internal/levenshtein"
)

// fields are the settings, in the order of the documents.
var fields = reflect.VisibleFields(reflect.TypeFor[Config]())

// names gives the variables of all settings.
func names() []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = nameOf(f)
	}
	return all
}

func nameOf(f reflect.StructField) string { return prefix + f.Tag.Get("env") }

// field gives the field of Config with a name that is known to exist.
func field(name string) reflect.StructField {
	f, _ := reflect.TypeFor[Config]().FieldByName(name)
	return f
}

// allowed says in words what the values of a setting may be.
func allowed(f reflect.StructField) string {
	if words := f.Tag.Get("allowed"); words != "" {
		return words
	}
	return f.Tag.Get("min") + " to " + f.Tag.Get("max")
}

// outOfRange says what is wrong with a number; "" where nothing is.
func outOfRange(f reflect.StructField, v reflect.Value) string {
	low, hasLow := f.Tag.Lookup("min")
	if !hasLow {
		return ""
	}
	n := v.Int()
	if v.Type() == reflect.TypeFor[time.Duration]() {
		n /= int64(time.Millisecond)
	}
	switch {
	case n < bound(low):
		return "too small"
	case n > bound(f.Tag.Get("max")):
		return "too large"
	}
	return ""
}

// bound reads a number of a tag. A test reads them all.
func bound(tag string) int64 {
	n, err := strconv.ParseInt(tag, 10, 64)
	if err != nil {
		panic("a bound in the tags of Config is not a number: " + tag)
	}
	return n
}

// nearest gives the name that the fewest edits lead to.
func nearest(name string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if d := levenshtein.Distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}
