package names

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/nearest"
)

const (
	maxCandidates = 10   // listed in an error
	maxSimilar    = 3    // likewise
	maxCompared   = 5000 // values that a misspelled name is compared with
	maxLength     = 64   // of a misspelled name, in bytes: the cost grows with it
)

// ambiguous returns the error of a text that fits several values.
func ambiguous(given string, found []candidate) error {
	var b strings.Builder
	for _, c := range found[:min(len(found), maxCandidates)] {
		b.WriteString("\n" + show.Line(c.Key))
	}
	if more := len(found) - maxCandidates; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	return session.Usagef("%q fits %d values: expected one of%s", given, len(found), &b)
}

// partly returns the error of a text that is only a part of names or keys, or has other letters.
func partly(given string, found []candidate) error {
	text := fmt.Sprintf("no value has the key or name %q", given)
	if len(found) > maxSimilar {
		return session.NotFound(fmt.Sprintf("%s; it is a part of %d others", text, len(found)))
	}
	var near []string
	for _, c := range found {
		near = append(near, cmp.Or(c.name, c.Key))
	}
	return session.NotFound(text + ": did you mean " + show.Line(strings.Join(near, ", ")) + "?")
}

// unknown returns the error of a text that fits no value, with similar names.
func unknown(ctx context.Context, s *session.Session, given string, known session.Catalogue) error {
	all, err := list(ctx, s, "", maxCompared)
	if err != nil {
		return err
	}
	var candidates []candidate
	for _, v := range all {
		model, name := known.ModelAndName(v.Key)
		candidates = append(candidates, candidate{v, model, name})
	}
	text := fmt.Sprintf("no value has the key or name %q", given)
	near := similar(given, candidates)
	if len(near) == 0 {
		near = similarModels(given, known)
	}
	if slices.Contains(near, given) { // the only known name that equals it is that of a model
		return session.NotFound(fmt.Sprintf("%s is a model, not a value: expected %s/NAME, a key or a name", given, given))
	}
	if len(near) > 0 {
		text += ": did you mean " + show.Line(strings.Join(near, ", ")) + "?"
	}
	return session.NotFound(text)
}

// similarModels returns the name of the model that is most similar to given, if there is one.
func similarModels(given string, known session.Catalogue) []string {
	var all []string
	for _, m := range known {
		all = append(all, m.Name)
	}
	if near := nearest.Word(given, all); near != "" {
		return []string{near}
	}
	return nil
}

// similar returns the names that are most similar to given, or keys if it has the form of one.
func similar(given string, all []candidate) (out []string) {
	if len(given) > maxLength && !session.IsKey(given) || len(given) > 4*maxLength {
		return nil
	}
	type scored struct {
		text     string
		distance int
	}
	var near []scored
	most := max(1, len(last(given))/3)
	for _, c := range all {
		text := c.name
		var distance int
		switch {
		case c.model == "" || c.name == "" || given == "":
			continue
		case session.IsKey(given):
			text = c.Key
			distance = nearest.Distance(given, text)
		default:
			distance = min(nearest.Distance(given, text), nearest.Distance(given, last(text)))
		}
		if distance <= most {
			near = append(near, scored{text, distance})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	for _, n := range near {
		if !slices.Contains(out, n.text) && len(out) < maxSimilar {
			out = append(out, n.text)
		}
	}
	return out
}
