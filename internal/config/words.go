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

// want describes the allowed values of a type.
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

// show quotes a value of the file, shortened if it is long.
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
