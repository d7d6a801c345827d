package agent

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A value is a flag.Value made of a function that parses and one that prints.
type value struct {
	// set stores a valid text and refuses others. show returns the present text, for the help.
	set  func(string) error
	show func() string
}

// Set implements flag.Value.
func (v value) Set(s string) error { return v.set(s) }

// String implements flag.Value.
func (v value) String() string {
	if v.show == nil { // package flag asks a zero value for its text
		return ""
	}
	return v.show()
}

// text makes a flag that stores its text at a place, which gets the default now.
func text(at *string, def string) flag.Value {
	*at = def
	return value{
		set:  func(s string) error { *at = s; return nil },
		show: func() string { return *at },
	}
}

// label accepts one element of a key.
func label(at *string, def string) flag.Value {
	v := text(at, def)
	return value{show: v.String, set: func(s string) error {
		if s == "." || s == ".." || s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == '/' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return errors.New("expected a name without slash, space or control character, such as vpp1")
		}
		return v.Set(s)
	}}
}

// choice accepts one of several words; the first is the default.
func choice(at *string, words ...string) flag.Value {
	v := text(at, words[0])
	return value{show: v.String, set: func(s string) error {
		if !slices.Contains(words, s) {
			return fmt.Errorf("expected %s", strings.Join(words, " or "))
		}
		return v.Set(s)
	}}
}

// release accepts the only earlier release whose addresses and rights are known.
func release(at *string) flag.Value {
	v := text(at, "")
	return value{show: v.String, set: func(s string) error {
		if s != olderRelease {
			return errors.New("expected " + olderRelease)
		}
		return v.Set(s)
	}}
}

// port accepts a TCP port; 0 means any free port.
func port(at *string, def string) flag.Value {
	v := text(at, def)
	return value{show: v.String, set: func(s string) error {
		if _, err := strconv.ParseUint(s, 10, 16); err != nil {
			return errors.New("expected a number from 0 to 65535")
		}
		return v.Set(s)
	}}
}

// duration accepts a Go duration that is not negative.
func duration(at *time.Duration, def time.Duration) flag.Value {
	*at = def
	return value{
		show: func() string { return at.String() },
		set: func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return errors.New("expected a duration such as 5s or 1m30s")
			}
			*at = d
			return nil
		},
	}
}

// level accepts the minimum log level. Names of other agents map to the nearest level.
func level(at *slog.Level) flag.Value {
	*at = slog.LevelInfo
	return value{
		show: func() string { return strings.ToLower(at.String()) },
		set: func(s string) error {
			switch strings.ToLower(s) {
			case "trace", "debug":
				*at = slog.LevelDebug
			case "info":
				*at = slog.LevelInfo
			case "warn", "warning":
				*at = slog.LevelWarn
			case "error", "fatal", "panic":
				*at = slog.LevelError
			default:
				return errors.New("expected debug, info, warn or error")
			}
			return nil
		},
	}
}
