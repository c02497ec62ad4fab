package config

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"envapi/sandbox"
)

// parsers read a value by the type of its field. Their errors are what a
// mistake says.
var parsers = map[reflect.Type]env.ParserFunc{
	reflect.TypeFor[int]():           func(v string) (any, error) { n, err := whole(v); return int(n), err },
	reflect.TypeFor[int64]():         func(v string) (any, error) { return whole(v) },
	reflect.TypeFor[time.Duration](): func(v string) (any, error) { return milliseconds(v) },
	reflect.TypeFor[bool]():          func(v string) (any, error) { return boolean(v) },
	reflect.TypeFor[Tier]():          func(v string) (any, error) { return tier(v) },
	reflect.TypeFor[UIDRange]():      func(v string) (any, error) { return uidRange(v) },
	reflect.TypeFor[Level]():         func(v string) (any, error) { return level(v) },
}

func whole(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number")
	}
	return n, nil
}

// milliseconds reads a duration that is given in whole milliseconds.
func milliseconds(v string) (time.Duration, error) {
	n, err := whole(v)
	if err != nil || n > int64(1<<63-1)/int64(time.Millisecond) {
		return 0, errors.New("not a whole number of milliseconds")
	}
	return time.Duration(n) * time.Millisecond, nil
}

func boolean(v string) (bool, error) {
	if v != "true" && v != "false" {
		return false, errors.New("neither true nor false")
	}
	return v == "true", nil
}

func tier(v string) (Tier, error) {
	if v == "auto" {
		return "", nil
	}
	if !slices.Contains(sandbox.Tiers, Tier(v)) {
		return "", errors.New("there is no such tier")
	}
	return Tier(v), nil
}

// The uids that an environment may get: above those of real users, and below
// the largest, since -1 and -2 mean other things.
const minUID, maxUID = 1 << 16, 1<<31 - 2

func uidRange(v string) (UIDRange, error) {
	first, last, found := strings.Cut(v, "-")
	a, err1 := whole(first)
	b, err2 := whole(last)
	switch {
	case !found || err1 != nil || err2 != nil:
		return UIDRange{}, errors.New("not two whole numbers with - between them")
	case a < minUID || b > maxUID:
		return UIDRange{}, errors.New("out of range")
	case b < a:
		return UIDRange{}, errors.New("the last is below the first")
	}
	return UIDRange{First: int(a), Last: int(b)}, nil
}

func level(v string) (Level, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	l, ok := levels[v]
	if !ok {
		return 0, errors.New("there is no such level")
	}
	return Level(l), nil
}
