package graph

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/internal/keyset"
	"github.com/keyplane/keyplane/scheduler/internal/folders"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// wholeState is everything that can be reached from a graph: each field of each
// node, version, edge, list and index, in the order in which it is kept. A field
// that is added to any of them is in it without further ado. Objects are named by
// their addresses, so that a copy in place of an object is a difference, too.
func wholeState(g *Graph) string {
	w := &walk{seen: map[uintptr]bool{}}
	w.object(reflect.ValueOf(g))
	for n := range g.nodes.All() {
		w.lines = append(w.lines, fmt.Sprintf("node %s %p", n.key, n))
		w.object(reflect.ValueOf(n))
	}
	for r := range g.resources.All() {
		w.lines = append(w.lines, fmt.Sprintf("resource %s %p", r.of, r))
		w.object(reflect.ValueOf(r))
	}
	for key := range g.available.All() {
		w.lines = append(w.lines, "up "+key)
	}
	slices.Sort(w.lines)
	return strings.Join(w.lines, "\n")
}

type walk struct {
	seen  map[uintptr]bool
	lines []string
}

// immutable are the types whose contents nobody changes.
var immutable = []reflect.Type{reflect.TypeFor[*Value](), reflect.TypeFor[*value.Dep](), reflect.TypeFor[*[]value.Claim](), reflect.TypeFor[*value.Claim]()}

// notState are the fields that are room, and what they hold is reached otherwise.
var notState = []string{"Node.ownEdge"}

// object adds a line for what p points to, once.
func (w *walk) object(p reflect.Value) {
	at := p.Pointer()
	if w.seen[at] || p.Elem().Kind() != reflect.Struct {
		return
	}
	w.seen[at] = true
	i := len(w.lines)
	w.lines = append(w.lines, "")
	line := w.fields(nil, p.Elem())
	w.lines[i] = fmt.Sprintf("%x %s%s", at, p.Elem().Type().Name(), line)
}

func (w *walk) fields(out []byte, v reflect.Value) []byte {
	t := v.Type()
	out = append(out, '{')
	for i := range t.NumField() {
		if f := t.Field(i); !slices.Contains(notState, t.Name()+"."+f.Name) {
			out = append(append(append(out, ' '), f.Name...), '=')
			out = w.value(out, v.Field(i))
		}
	}
	return append(out, '}')
}

func (w *walk) value(out []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(out, v.Uint(), 10)
	case reflect.String:
		return append(out, v.String()...)
	case reflect.Func:
		return strconv.AppendUint(out, uint64(v.Pointer()), 16)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[folders.Index[*Node]]() {
			return append(out, "by key"...) // as for a keyset.Set
		}
		return w.fields(out, v)
	case reflect.Interface:
		if v.IsNil() {
			return append(out, "nil"...)
		}
		return w.value(append(out, v.Elem().Type().String()...), v.Elem())
	case reflect.Pointer:
		return w.pointer(out, v)
	case reflect.Slice:
		return w.list(out, v)
	case reflect.Map:
		return w.index(out, v)
	default:
		panic("wholeState does not know " + v.Kind().String())
	}
}

func (w *walk) pointer(out []byte, v reflect.Value) []byte {
	switch {
	case v.IsNil():
		return append(out, "nil"...)
	case v.Type() == reflect.TypeFor[*keyset.Set[Node]](), v.Type() == reflect.TypeFor[*keyset.Set[resource]]():
		return append(out, "by key"...) // wholeState has their content; how they keep it is their own affair
	case v.Type() == reflect.TypeFor[*hub]() && v.Elem().Field(0).Len() == 0 && v.Elem().Field(1).IsNil():
		return append(out, "nil"...) // it stays when the last edge has left
	case v.Type() == reflect.TypeFor[*hub]():
		return w.fields(out, v.Elem())
	case slices.Contains(immutable, v.Type()):
	default:
		w.object(v)
	}
	return strconv.AppendUint(out, uint64(v.Pointer()), 16)
}

func (w *walk) list(out []byte, v reflect.Value) []byte {
	out = append(out, '[')
	for i := range v.Len() {
		e := v.Index(i)
		if e.Type() == reflect.TypeFor[candidate]() {
			out = w.fields(out, e)
		} else if e.Kind() == reflect.Struct { // it may be pointed to
			w.object(e.Addr())
			out = strconv.AppendUint(out, uint64(e.Addr().Pointer()), 16)
		} else {
			out = w.value(out, e)
		}
		out = append(out, ' ')
	}
	return append(out, ']')
}

func (w *walk) index(out []byte, v reflect.Value) []byte {
	var items []string
	for it := v.MapRange(); it.Next(); {
		items = append(items, string(w.value(w.value(nil, it.Key()), it.Value())))
	}
	slices.Sort(items)
	return append(out, fmt.Sprint(items)...)
}

// difference are the lines that only one of two states has.
func difference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var out []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}
