package endpoint

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Query holds the arguments of a request. An empty argument counts as absent. Each
// method returns an error that names the argument and the allowed values.
type Query struct{ url.Values }

// One returns an argument that may occur once.
func (q Query) One(name string) (string, error) {
	if n := len(q.Values[name]); n > 1 {
		return "", fmt.Errorf("argument %s is given %d times: expected it once", name, n)
	}
	return q.Get(name), nil
}

// Required returns an argument that must occur once. expected describes it in the
// error.
func (q Query) Required(name, expected string) (string, error) {
	s, err := q.One(name)
	if err == nil && s == "" {
		err = fmt.Errorf("argument %s is missing: expected %s", name, expected)
	}
	return s, err
}

// AtMostOne returns name and value of the argument that is given, or empty strings.
func (q Query) AtMostOne(names ...string) (name, value string, err error) {
	for _, n := range names {
		v, err := q.One(n)
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

// Choice returns one of the words. The first is the default.
func (q Query) Choice(name string, words ...string) (string, error) {
	s, err := q.One(name)
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

// Boolean returns a flag: 0, 1, true or false.
func (q Query) Boolean(name string) (bool, error) {
	s, err := q.Choice(name, "0", "1", "true", "false")
	return s == "1" || s == "true", err
}

// Flag returns a flag that may be given without a value: ?replace.
func (q Query) Flag(name string) (bool, error) {
	if q.Has(name) && q.Get(name) == "" {
		return true, nil
	}
	return q.Boolean(name)
}

// Number returns a number and whether it is given.
func (q Query) Number(name string) (n uint64, given bool, err error) {
	s, err := q.One(name)
	if err != nil || s == "" {
		return 0, false, err
	}
	n, err = strconv.ParseUint(s, 10, 64)
	if err != nil {
		err = fmt.Errorf("argument %s=%q: expected a whole number of at least 0", name, s)
	}
	return n, true, err
}

// Moment returns a time, given as nanoseconds since 1970, or the default.
func (q Query) Moment(name string, otherwise time.Time) (time.Time, error) {
	s, err := q.One(name)
	if err != nil || s == "" {
		return otherwise, err
	}
	ns, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return otherwise, fmt.Errorf("argument %s=%q: expected nanoseconds since 1970", name, s)
	}
	return time.Unix(0, ns), nil
}
