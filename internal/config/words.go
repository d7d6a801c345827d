package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// want says what stands rightly where a type is expected.
func want(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return `a duration, such as "3s" or "500ms"`
	case t.Kind() == reflect.Struct:
		return "keys with values, such as " + strings.Join(slices.Sorted(maps.Keys(fieldsOf(t))), ", ")
	case t.Kind() == reflect.Map:
		return "keys, each with " + want(t.Elem())
	case t.Kind() == reflect.Slice:
		return "a list, each entry " + want(t.Elem())
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text"
	case reflect.Zero(t).CanInt():
		return "a whole number"
	case reflect.Zero(t).CanUint():
		return "a whole number, not negative"
	}
	return "a " + t.String()
}

// show quotes what stands in the file, cut where it is long.
func show(n *yaml.Node) string {
	const most = 60
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case len(n.Value) > most:
		return fmt.Sprintf("%q", strings.ToValidUTF8(n.Value[:most], "")+"…")
	}
	return fmt.Sprintf("%q", n.Value)
}

// nearest returns the known key that is most like one that is not; empty when
// none is like it.
func nearest(key string, fields map[string]int) string {
	best, least := "", max(2, len(key)/3)+1
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if d := distance(strings.ToLower(key), name, least); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to change, add or leave out to turn a into b; it
// may return limit for any number that is not below it.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
