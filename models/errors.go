package models

import (
	"errors"
	"fmt"
	"strings"
)

// A FieldError says what is wrong with one field of a value and what would be right.
type FieldError struct {
	Field string // path with proto names: "ip_addresses[1]", "veth.peer_if_name"
	Value any    // what the field holds; nil: nothing worth showing
	Want  string // what would be right: `an address with prefix length, such as "10.0.0.1/24"`
}

func (e *FieldError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("%s: want %s", e.Field, e.Want)
	}
	return fmt.Sprintf("%s: %s: want %s", e.Field, show(e.Value), e.Want)
}

// Fields returns the paths of the invalid fields in err, in order.
func Fields(err error) []string {
	var out []string
	switch e := err.(type) {
	case nil:
	case *FieldError:
		out = append(out, e.Field)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, Fields(one)...)
		}
	default:
		out = Fields(errors.Unwrap(err))
	}
	return out
}

// show renders a value for an error: quoted, and cut where it is long.
func show(v any) string {
	const most = 80
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
