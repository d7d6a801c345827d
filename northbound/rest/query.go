package rest

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A query holds the arguments of a request. An empty argument counts as absent.
type query struct{ url.Values }

// one returns an argument that may occur once.
func (q query) one(name string) (string, error) {
	if n := len(q.Values[name]); n > 1 {
		return "", fmt.Errorf("argument %s is given %d times: expected it once", name, n)
	}
	return q.Get(name), nil
}

// required returns an argument that must occur once. expected describes it in the
// error.
func (q query) required(name, expected string) (string, error) {
	s, err := q.one(name)
	if err == nil && s == "" {
		err = fmt.Errorf("argument %s is missing: expected %s", name, expected)
	}
	return s, err
}

// atMostOne returns name and value of the argument that is given, or empty strings.
func (q query) atMostOne(names ...string) (name, value string, err error) {
	for _, n := range names {
		v, err := q.one(n)
		if err != nil {
			return "", "", err
		}
		if v == "" {
			continue
		}
		if name != "" {
			return "", "", fmt.Errorf("arguments %s and %s exclude each other: expected one of %s", name, n, strings.Join(names, ", "))
		}
		name, value = n, v
	}
	return name, value, nil
}

// choice returns one of the words. The first is the default.
func (q query) choice(name string, words ...string) (string, error) {
	s, err := q.one(name)
	if err != nil || s == "" {
		return words[0], err
	}
	for _, w := range words {
		if s == w {
			return w, nil
		}
	}
	return "", fmt.Errorf("argument %s=%q: expected one of %s", name, s, strings.Join(words, ", "))
}

// boolean returns a flag: 0, 1, true or false.
func (q query) boolean(name string) (bool, error) {
	s, err := q.choice(name, "0", "1", "true", "false")
	return s == "1" || s == "true", err
}

// flag returns a flag that may be given without a value: ?replace.
func (q query) flag(name string) (bool, error) {
	if q.Has(name) && q.Get(name) == "" {
		return true, nil
	}
	return q.boolean(name)
}

// number returns a number and whether it is given.
func (q query) number(name string) (n uint64, given bool, err error) {
	s, err := q.one(name)
	if err != nil || s == "" {
		return 0, false, err
	}
	n, err = strconv.ParseUint(s, 10, 64)
	if err != nil {
		err = fmt.Errorf("argument %s=%q: expected a whole number of at least 0", name, s)
	}
	return n, true, err
}

// moment returns a time, given as nanoseconds since 1970, or the default.
func (q query) moment(name string, otherwise time.Time) (time.Time, error) {
	s, err := q.one(name)
	if err != nil || s == "" {
		return otherwise, err
	}
	ns, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return otherwise, fmt.Errorf("argument %s=%q: expected nanoseconds since 1970", name, s)
	}
	return time.Unix(0, ns), nil
}
