package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// errChanges ends plan, diff and drift with ExitChanges: there is something to do. It is not printed.
var errChanges = errors.New("there are changes")

// The symbols of changes. They tell changes apart without colour.
const (
	creates   = "+"
	updates   = "~"
	deletes   = "-"
	recreates = "-/+"
	waits     = "..." // PENDING
)

// A change is the change of one value, for people.
type change struct {
	// One of the symbols above, which is also the colour of the line.
	symbol, key string
	before      *wire.Message // nil: none
	after       *wire.Message // nil: none
	note        string        // such as the reason; empty: none
}

// A printer prints changes. On a terminal it uses colour.
type printer struct {
	// Everything is printed at once, so that a failed command leaves no half of a list.
	out    strings.Builder
	colour bool
}

// newPrinter returns a printer for out. The environment variable NO_COLOR turns colour off
// (no-color.org).
func (a *app) newPrinter() *printer {
	none, _ := a.env("NO_COLOR")
	return &printer{colour: isTerminal(a.Out) && none == ""}
}

// line prints a line in the colour of its symbol.
func (p *printer) line(symbol, text string) {
	code := map[string]string{creates: "32", updates: "33", deletes: "31", recreates: "35"}[symbol]
	if !p.colour || code == "" {
		p.out.WriteString(text + "\n")
		return
	}
	p.out.WriteString("\x1b[" + code + "m" + text + "\x1b[0m\n")
}

// change prints a change with its fields: those that differ for an update, otherwise all.
func (p *printer) change(c change) {
	head := fmt.Sprintf("%-3s %s", c.symbol, oneLine(c.key))
	if c.note != "" {
		head += " (" + oneLine(c.note) + ")"
	}
	p.line(c.symbol, head)
	before, after := fieldsOf(c.before), fieldsOf(c.after)
	for _, path := range slices.Sorted(maps.Keys(union(before, after))) {
		was, had := before[path]
		is, has := after[path]
		switch {
		case had && has && was == is:
		case c.symbol == creates || c.symbol == recreates && !had:
			p.line(creates, "      "+path+": "+is)
		case c.symbol == deletes || c.symbol == waits:
		case !had:
			p.line(creates, "    + "+path+": "+is)
		case !has:
			p.line(deletes, "    - "+path+": "+was)
		default:
			p.line(updates, "    ~ "+path+": "+was+" -> "+is)
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
		return map[string]string{"value": oneLine(string(m.ProtoMsgData))}
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
		out[oneLine(path)] = oneLine(strings.Trim(string(text), `"`))
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
	case creates:
		t.create++
	case updates:
		t.update++
	case deletes:
		t.remove++
	case recreates:
		t.recreate++
	case waits:
		t.pending++
	}
}

// changesOf returns the operations of a plan as changes, in the order of their execution. The two
// halves of a re-creation are one change. Properties, which nothing is called for, are left out.
func changesOf(ops []wire.Operation) (out []change) {
	deleted := map[string]*wire.Message{} // first halves of re-creations
	for i := range ops {
		op := &ops[i]
		c := change{key: op.Key, before: op.PrevValue, after: op.NewValue, note: reason(op)}
		switch {
		case op.NOOP:
			c.symbol, c.note = withoutVerb(op, c.note)
		case op.IsRecreate && op.Operation == "DELETE":
			deleted[op.Key] = op.PrevValue
			continue
		case op.IsRecreate && op.Operation == "CREATE":
			c.symbol, c.before = recreates, deleted[op.Key]
			delete(deleted, op.Key)
		default:
			c.symbol = map[string]string{"CREATE": creates, "UPDATE": updates, "DELETE": deletes}[op.Operation]
		}
		if c.symbol != "" {
			out = append(out, c)
		}
	}
	for key, before := range deleted { // a re-creation that does not reach its second half
		out = append(out, change{symbol: deletes, key: key, before: before})
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
		return waits, note
	case op.Operation == "DELETE" && !op.IsDerived: // it was never applied
		return deletes, "was " + op.PrevState
	}
	return "", ""
}

// reason says why an operation happens besides the change of its own value.
func reason(op *wire.Operation) string {
	var out []string
	if op.IsDerived {
		out = append(out, "part of another value")
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

// printChanges prints changes and a last line that counts them. what is the subject of that line,
// such as "Plan". It returns errChanges if there is a change that does something.
func (a *app) printChanges(out io.Writer, what string, all []change, invalid int) error {
	p, t := a.newPrinter(), tally{invalid: invalid}
	for _, c := range all {
		p.change(c)
		t.add(c.symbol)
	}
	changed := t.create+t.update+t.remove+t.recreate > 0
	if !changed && t.pending+t.invalid == 0 {
		p.line("", "Nothing to do.")
	} else {
		p.line("", what+": "+t.String())
	}
	if _, err := io.WriteString(out, p.out.String()); err != nil {
		return err
	}
	if changed || t.pending > 0 {
		return errChanges
	}
	return nil
}
