package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/northbound/rest/internal/connections"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/records"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// plan answers the operations that the values of the body would cause. Invalid
// values are reported and left out of the plan.
func (h *handler) plan(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	format, err := q.Choice("format", "json", "text")
	if err != nil {
		return reply.BadRequest(err)
	}
	of, err := planOf(q)
	if err != nil {
		return reply.BadRequest(err)
	}
	text, err := h.textOf(w, r)
	if err != nil {
		return err
	}
	intended, leave, err := h.intended(r.Context(), of.as, of.keep, of.fresh, text)
	if err != nil {
		return err
	}
	defer leave()
	intended.warnings = firstWarnings(intended.warnings)
	record, err := h.sched.Plan(r.Context(), scheduler.Txn{Changes: intended.changes, Replace: of.replace})
	if errors.Is(err, scheduler.ErrUnsettled) {
		return reply.Status(http.StatusServiceUnavailable, err)
	}
	if err != nil {
		return err
	}
	if format == "text" {
		text := txnlog.PlanText(record, -1)
		leave()
		return reply.Text(w, slices.Values([]string{text, warningText(intended.warnings) + invalidText(intended.invalid) + unknownText(record.Unknown)}))
	}
	leave() // the answer needs only the operations
	return reply.Plan(w, records.Operations(record.Planned), wire.Plan{
		Invalid: intended.invalid, Unknown: connections.Unknown(record.Unknown), Warnings: intended.warnings,
	})
}

// A preview says what the body of a plan replaces.
type preview struct {
	as                   string // the source or file whose content it is; "": values that are declared
	replace, keep, fresh bool   // the arguments replace, add and new
}

// planOf reads the arguments of a plan.
func planOf(q endpoint.Query) (of preview, err error) {
	if of.as, err = q.One("as"); err != nil {
		return of, err
	}
	for name, on := range map[string]*bool{"replace": &of.replace, "add": &of.keep, "new": &of.fresh} {
		if *on, err = q.Boolean(name); err != nil {
			return of, err
		}
	}
	switch {
	case of.as != "" && of.replace:
		err = errors.New("replace: not with as, which replaces the content of a source")
	case of.keep && (of.as == "" || strings.Contains(of.as, ":")):
		err = errors.New("add: expected as=SOURCE, whose other values stay; a file is replaced as a whole")
	}
	return of, err
}

// An intention is the meaning of a text: the changes of its valid values, and what is to be said about
// the others.
type intention struct {
	// Only valid values are changes. A text with some invalid values still has a plan of the
	// others.
	changes  []scheduler.Change
	invalid  []wire.Invalid
	warnings []wire.Warning
}

// intended returns the meaning of a text: of values that are declared, or of the content of a source;
// see previewed. The memory for it counts until leave is called.
func (h *handler) intended(ctx context.Context, as string, keep, fresh bool, text []byte) (out intention, leave func(), err error) {
	if as != "" {
		return h.previewed(ctx, as, keep, fresh || keep, text)
	}
	items, ignored, leave, err := h.itemsToTry(ctx, text)
	if err == nil {
		out.changes, out.invalid, out.warnings = h.changes(items, h.change)
		out.ignore(ignored)
	}
	return out, leave, err
}

// ignore adds warnings about the parts of a text that have no effect.
func (out *intention) ignore(parts []error) {
	for _, err := range parts {
		out.warnings = append(out.warnings, wire.Warning{Line: lineOf(structured.Item{}, err), Text: messageOnly(err) + "; it has no effect"})
	}
}

// maxInvalid is how many invalid items an answer names; the others are counted.
const maxInvalid = 1000

// changes converts the items with the function change. It returns the changes of
// valid items, the errors of the others, and warnings. If a key occurs several
// times, the first item is used and the others are invalid.
func (h *handler) changes(items []structured.Item, change func(structured.Item) (scheduler.Change, error)) (
	out []scheduler.Change, invalid []wire.Invalid, warnings []wire.Warning,
) {
	lines := map[string]int{}
	more := 0
	for _, it := range items {
		c, err := change(it)
		if first, repeated := lines[c.Key]; err == nil && repeated {
			err = fmt.Errorf("the key is already in line %d: expected it once", first)
		}
		if err != nil && len(invalid) == maxInvalid {
			more++
			continue
		}
		if err != nil {
			invalid = append(invalid, wire.Invalid{Key: h.short(it.Key), Line: lineOf(it, err), Error: messageOnly(err), Fields: models.Fields(err)})
			continue
		}
		lines[c.Key] = it.Line
		out = append(out, c)
		warnings = append(warnings, warningsOf(c, it)...)
	}
	if more > 0 {
		invalid = append(invalid, wire.Invalid{Error: fmt.Sprintf("and %d more are invalid", more)})
	}
	return out, invalid, warnings
}

// warningsOf returns the warnings about the notation of the item and about fields without
// effect. Warnings do not refuse a value: it is applied without the field.
func warningsOf(c scheduler.Change, it structured.Item) (out []wire.Warning) {
	for _, w := range it.Warnings {
		line := it.Line
		if at, ok := errors.AsType[*document.Error](w); ok {
			line = at.Line
		}
		out = append(out, wire.Warning{Key: c.Key, Line: line, Text: messageOnly(w)})
	}
	if c.Value != nil {
		for _, text := range c.Value.Warnings() {
			out = append(out, wire.Warning{Key: c.Key, Line: it.Line, Text: text})
		}
	}
	return out
}

// maxWarnings is how many warnings a plan lists; the others are counted.
const maxWarnings = 1000

// firstWarnings returns the warnings that a plan lists.
func firstWarnings(all []wire.Warning) []wire.Warning {
	more := len(all) - maxWarnings
	if more <= 0 {
		return all
	}
	return append(slices.Clip(all[:maxWarnings]), wire.Warning{Text: fmt.Sprintf("and %d more warnings", more)})
}

// warningText returns the warnings in the format of the plan's text.
func warningText(warnings []wire.Warning) string {
	if len(warnings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  * warnings:\n")
	for _, w := range warnings {
		b.WriteString("      - ")
		if w.Line > 0 { // a key that is deleted because it is absent has none
			fmt.Fprintf(&b, "line %d: ", w.Line)
		}
		if w.Key != "" {
			fmt.Fprintf(&b, "%s: ", printable.Line(w.Key))
		}
		fmt.Fprintf(&b, "%s\n", printable.Line(w.Text))
	}
	return b.String()
}

// messageOnly returns the text of err without its line, which wire.Invalid has in
// another field.
func messageOnly(err error) string {
	if at, ok := errors.AsType[*document.Error](err); ok {
		return at.Msg
	}
	return err.Error()
}

// lineOf returns the line of the field that err is about, or that of the whole value.
func lineOf(it structured.Item, err error) int {
	if at, ok := errors.AsType[*document.Error](err); ok {
		return at.Line
	}
	return it.Line
}

// change decodes an item. A nil value requests the removal of the key.
func (h *handler) change(it structured.Item) (scheduler.Change, error) {
	key, err := h.own(it.Key)
	switch {
	case it.Err != nil:
		return scheduler.Change{}, it.Err
	case err != nil:
		return scheduler.Change{}, err
	case it.Value == nil:
		return scheduler.Unwant(key), nil
	}
	v, err := h.sched.Decode(key, it.Value)
	if err != nil {
		return scheduler.Change{}, err
	}
	// Otherwise a document that was read without secrets would look as if it changed them.
	if err := models.CheckSecrets(v.Message()); err != nil {
		return scheduler.Change{}, err
	}
	return v.Change(), nil
}

// invalidText returns the invalid values in the format of the plan's text.
func invalidText(invalid []wire.Invalid) string {
	if len(invalid) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  * invalid, and not part of the plan:\n")
	for _, i := range invalid {
		fmt.Fprintf(&b, "      - line %d: ", i.Line)
		if i.Key != "" {
			fmt.Fprintf(&b, "%s: ", printable.Line(i.Key))
		}
		fmt.Fprintf(&b, "%s\n", printable.Line(strings.ReplaceAll(i.Error, "\n", "; ")))
	}
	return b.String()
}

// unknownText returns the unknown kinds in the format of the plan's text.
func unknownText(kinds []scheduler.UnknownKind) string {
	if len(kinds) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  * unknown, and not part of the plan:\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "      - %s: %s\n", k.Descriptor, printable.Line(k.String()))
	}
	return b.String()
}
