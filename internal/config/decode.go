package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/nearest"
)

// A decoder fills a struct from a file and collects the errors of the file.
type decoder struct {
	file    string
	unknown []Unknown
	errs    []error
}

// value decodes the node at path.
func (d *decoder) value(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.ShortTag() == "!!null":
	case into.Addr().Type().Implements(reflect.TypeFor[yaml.Unmarshaler]()):
		d.own(path, n, into)
	case into.Kind() == reflect.Struct:
		d.structure(path, n, into)
	case into.Kind() == reflect.Map:
		d.mapping(path, n, into)
	case into.Kind() == reflect.Slice:
		d.list(path, n, into)
	case !scalar(n, into):
		d.wrong(path, n, want(into.Type()))
	}
}

// scalar decodes the remaining types, and returns false if it cannot. The library would
// turn 1.5 into the number 1, and knows no durations without a unit.
func scalar(n *yaml.Node, into reflect.Value) bool {
	isDuration := into.Type() == reflect.TypeFor[time.Duration]()
	isInt := n.ShortTag() == "!!int"
	if isDuration && isInt {
		ns, err := strconv.ParseInt(n.Value, 0, 64)
		into.SetInt(ns)
		return err == nil
	}
	if !isDuration && (into.CanInt() || into.CanUint()) && !isInt {
		return false
	}
	return n.Decode(into.Addr().Interface()) == nil
}

// own lets a type decode itself. The type's error names the allowed values.
func (d *decoder) own(path string, n *yaml.Node, into reflect.Value) {
	if err := n.Decode(into.Addr().Interface()); err != nil {
		d.errs = append(d.errs, fmt.Errorf("%s:%d: %s: %w", d.file, n.Line, path, err))
	}
}

// structure sets the fields of a struct. Unknown keys are reported, and are no error.
func (d *decoder) structure(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrong(path, n, want(into.Type()))
		return
	}
	fields := fieldsOf(into.Type())
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := key.Value
		field, ok := fields[name]
		switch first := lines[name]; {
		case !ok:
			d.unknown = append(d.unknown, Unknown{d.file, key.Line, join(path, name), nearest.Word(name, slices.Sorted(maps.Keys(fields)))})
		case first != 0:
			d.twice(path, key, first)
		default:
			lines[name] = key.Line
			d.value(join(path, name), n.Content[i+1], into.Field(field))
		}
	}
}

// mapping accepts any key, once. Keys must be text.
func (d *decoder) mapping(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrong(path, n, want(into.Type()))
		return
	}
	all := reflect.MakeMap(into.Type())
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if first := lines[key.Value]; first != 0 {
			d.twice(path, key, first)
			continue
		}
		lines[key.Value] = key.Line
		one := reflect.New(into.Type().Elem()).Elem()
		d.value(join(path, key.Value), n.Content[i+1], one)
		all.SetMapIndex(reflect.ValueOf(key.Value), one)
	}
	into.Set(all)
}

// list sets a slice; each element has its index in the path.
func (d *decoder) list(path string, n *yaml.Node, into reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(path, n, want(into.Type()))
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, one := range n.Content {
		d.value(fmt.Sprintf("%s[%d]", path, i), one, list.Index(i))
	}
	into.Set(list)
}

// twice reports a key that was given before, with the line of the first one.
func (d *decoder) twice(path string, key *yaml.Node, first int) {
	d.errs = append(d.errs, fmt.Errorf("%s:%d: %s is on line %d already", d.file, key.Line, join(path, key.Value), first))
}

// wrong reports a value of another type than the wanted one.
func (d *decoder) wrong(path string, n *yaml.Node, want string) {
	where := fmt.Sprintf("%s:%d: ", d.file, n.Line)
	if path != "" {
		where += path + ": "
	}
	d.errs = append(d.errs, fmt.Errorf("%s%s: expected %s", where, show(n), want))
}

// fieldsOf maps the keys of a struct to the indices of its fields.
func fieldsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if f.IsExported() && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
