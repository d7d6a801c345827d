package rest

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// query are the arguments of a request. Of each, an empty one counts as absent.
type query struct{ url.Values }

// one returns an argument that may be given once.
func (q query) one(name string) (string, error) {
	if n := len(q.Values[name]); n > 1 {
		return "", fmt.Errorf("argument %s is given %d times: expected it once", name, n)
	}
	return q.Get(name), nil
}

// required returns an argument that must be given once.
func (q query) required(name, want string) (string, error) {
	s, err := q.one(name)
	if err == nil && s == "" {
		err = fmt.Errorf("argument %s is missing: expected %s", name, want)
	}
	return s, err
}

// atMostOne returns which of the arguments is given, and what it is; empty: none.
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

// choice returns one of a few words, the first where none is given.
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

// yes tells whether a switch is on.
func (q query) boolean(name string) (bool, error) {
	s, err := q.choice(name, "0", "1", "true", "false")
	return s == "1" || s == "true", err
}

// number returns a number and whether it is given.
func (q query) number(name string) (n uint64, given bool, err error) {
	s, err := q.one(name)
	if err != nil || s == "" {
		return 0, false, err
	}
	if n, err = strconv.ParseUint(s, 10, 64); err != nil {
		err = fmt.Errorf("argument %s=%q: expected a whole number of at least 0", name, s)
	}
	return n, true, err
}

// moment returns a time, given as nanoseconds since 1970, or otherwise.
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
