package show

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// The symbols of changes. They tell changes apart without colour.
const (
	Creates   = "+"
	Updates   = "~"
	Deletes   = "-"
	Recreates = "-/+"
	Waits     = "..." // PENDING
)

// A Change is the change of one value, for people.
type Change struct {
	// One of the symbols above, which is also the colour of the line.
	Symbol, Key string
	Before      *wire.Message // nil: none
	After       *wire.Message // nil: none
	Note        string        // such as the reason; empty: none
}

// A printer prints changes. On a terminal it uses colour.
type printer struct {
	// Everything is printed at once, so that a failed command leaves no half of a list.
	out    strings.Builder
	to     io.Writer
	colour bool
}

// newPrinter returns a printer for out. env looks up environment variables: NO_COLOR turns colour
// off (no-color.org), and so does TERM=dumb.
func newPrinter(out io.Writer, env func(string) (string, bool)) *printer {
	none, _ := env("NO_COLOR")
	return &printer{to: out, colour: Draws(out, env) && none == ""}
}

// line prints a line in the colour of its symbol.
func (p *printer) line(symbol, text string) {
	text = Broken(p.to, text, 8)
	code := map[string]string{Creates: "32", Updates: "33", Deletes: "31", Recreates: "35"}[symbol]
	if !p.colour || code == "" {
		p.out.WriteString(text + "\n")
		return
	}
	p.out.WriteString("\x1b[" + code + "m" + text + "\x1b[0m\n")
}

// change prints a change with its fields: those that differ for an update, otherwise all.
func (p *printer) change(c Change) {
	head := fmt.Sprintf("%-3s %s", c.Symbol, Line(c.Key))
	if c.Note != "" {
		head += " (" + Line(c.Note) + ")"
	}
	p.line(c.Symbol, head)
	before, after := fieldsOf(c.Before), fieldsOf(c.After)
	for _, path := range slices.Sorted(maps.Keys(union(before, after))) {
		was, had := before[path]
		is, has := after[path]
		switch {
		case had && has && was == is:
		case c.Symbol == Creates || c.Symbol == Recreates && !had:
			p.line(Creates, "      "+path+": "+is)
		case c.Symbol == Deletes || c.Symbol == Waits:
		case !had:
			p.line(Creates, "    + "+path+": "+is)
		case !has:
			p.line(Deletes, "    - "+path+": "+was)
		default:
			p.line(Updates, "    ~ "+path+": "+was+" -> "+is)
		}
	}
}

// union returns the keys of both maps.
func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// fieldsOf returns the fields of a message by their path, such as "paths[0].weight", with values
// in JSON. Fields with their default are left out.
func fieldsOf(m *wire.Message) map[string]string {
	out := map[string]string{}
	if m == nil {
		return out
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(m.ProtoMsgData)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return map[string]string{"value": Line(string(m.ProtoMsgData))}
	}
	addFields(out, "", v)
	return out
}

// addFields adds the fields of v, which is at a path.
func addFields(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			addFields(out, strings.TrimPrefix(path+"."+name, "."), field)
		}
	case []any:
		for i, element := range v {
			addFields(out, path+"["+strconv.Itoa(i)+"]", element)
		}
	default:
		text, _ := json.Marshal(v) // a value that was decoded can be encoded
		out[Line(path)] = Line(strings.Trim(string(text), `"`))
	}
}

// tally counts changes for the last line.
type tally struct{ create, update, remove, recreate, pending, invalid int }

// String lists the counts that matter.
func (t tally) String() string {
	out := []string{fmt.Sprintf("%d to create, %d to update, %d to delete", t.create, t.update, t.remove)}
	for _, more := range []struct {
		n    int
		text string
	}{{t.recreate, "to re-create"}, {t.pending, "pending"}, {t.invalid, "invalid"}} {
		if more.n > 0 {
			out = append(out, fmt.Sprint(more.n, " ", more.text))
		}
	}
	return strings.Join(out, ", ") + "."
}

// add counts one change.
func (t *tally) add(symbol string) {
	switch symbol {
	case Creates:
		t.create++
	case Updates:
		t.update++
	case Deletes:
		t.remove++
	case Recreates:
		t.recreate++
	case Waits:
		t.pending++
	}
}

// ChangesOf returns the operations of a plan as changes, in the order of their execution. The two
// halves of a re-creation are one change. Properties, which nothing is called for, are left out.
func ChangesOf(ops []wire.Operation) (out []Change) {
	deleted := map[string]*wire.Message{} // first halves of re-creations
	for i := range ops {
		op := &ops[i]
		c := Change{Key: op.Key, Before: op.PrevValue, After: op.NewValue, Note: reason(op)}
		switch {
		case op.NOOP:
			c.Symbol, c.Note = withoutVerb(op, c.Note)
		case op.IsRecreate && op.Operation == "DELETE":
			deleted[op.Key] = op.PrevValue
			continue
		case op.IsRecreate && op.Operation == "CREATE":
			before, applied := deleted[op.Key]
			if applied { // it is PENDING only between the halves
				second := *op
				second.PrevState = ""
				c.Note = reason(&second)
			}
			c.Symbol, c.Before = Recreates, before
			delete(deleted, op.Key)
		default:
			c.Symbol = map[string]string{"CREATE": Creates, "UPDATE": Updates, "DELETE": Deletes}[op.Operation]
		}
		if c.Symbol != "" {
			out = append(out, c)
		}
	}
	for key, before := range deleted { // a re-creation that does not reach its second half
		out = append(out, Change{Symbol: Deletes, Key: key, Before: before})
	}
	return out
}

// withoutVerb returns symbol and note of an operation that nothing is called for. The symbol is empty
// if it is no change for people.
func withoutVerb(op *wire.Operation, note string) (symbol, its string) {
	switch {
	case op.IsProperty || op.Operation == "VALIDATE":
		return "", ""
	case op.NewState == "PENDING":
		return Waits, note
	case op.Operation == "DELETE" && !op.IsDerived: // it was never applied
		return Deletes, "was " + op.PrevState
	}
	return "", ""
}

// reason says why an operation happens besides the change of its own value.
func reason(op *wire.Operation) string {
	var out []string
	if op.IsDerived {
		base := "another value" // agents of earlier versions do not name it
		if op.Base != "" {
			base = op.Base
		}
		out = append(out, "part of "+base)
	}
	switch {
	case len(op.Waits) > 0 && op.NOOP:
		out = append(out, "waits for "+strings.Join(op.Waits, ", "))
	case len(op.Waits) > 0:
		out = append(out, "PENDING then: waits for "+strings.Join(op.Waits, ", "))
	case op.PrevState == "PENDING" && op.Operation == "CREATE":
		out = append(out, "was PENDING")
	}
	return strings.Join(out, ", ")
}

// Changes prints changes to out and a last line that counts them. subject is the subject of that
// line, such as "Plan"; invalid is the number of values that have no change because they are
// refused. env looks up environment variables.
func Changes(out io.Writer, env func(string) (string, bool), subject string, all []Change, invalid int) error {
	p, t := newPrinter(out, env), tally{invalid: invalid}
	for _, c := range all {
		p.change(c)
		t.add(c.Symbol)
	}
	if t == (tally{}) {
		p.line("", "Nothing to do.")
	} else {
		p.line("", subject+": "+t.String())
	}
	_, err := io.WriteString(out, p.out.String())
	return err
}
