// Package names finds the values that people mean on a command line. A command that shows a value takes its key, its
// name, or a unique part of either; one that changes a value, or that scripts rely on, takes no part:
//
//	key, err := names.Value(ctx, session, "veth")
//	key, err := names.Whole(ctx, session, "veth1")
//
// The agent has the list of keys. A key is compared without regard to the agent's own prefix,
// so a key can be copied from a store. One with the prefix of another agent is refused: a value of this agent must not be
// changed in place of that one. The best kind of match decides; only matches of the
// same kind compete:
//
//	1  the key
//	2  the name: veth1, 10.1.0.0/16/veth1
//	3  model and name, linux.interfaces.interface/veth1, or the last elements of the key, interface/veth1
//	4  the name in other letters: VETH1
//	5  a part of the name: each word is contained in it, in small or capital letters
//	6  a part of the key, likewise
//	7  a part of the key of a value that is derived from another one
//
// Names are searched within one command, and nothing is kept. Text of the agent is made
// printable where errors quote it.
package names

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// Value returns the key of the value that the user means. Only commands within
// session.WithAgent may call it. An ambiguous text is a session.UsageError that lists the
// candidates. If there is no such value, the error is kvdbsync.ErrNotFound and names similar
// ones.
func Value(ctx context.Context, s *session.Session, given string) (key string, err error) {
	return one(ctx, s, given, func(candidate, string) bool { return true })
}

// Whole is Value for commands that change the value, or that scripts rely on. A part of a name does not count: when the value with
// the name wan is gone, wan is a part of wan-backup, and the same command would delete that.
func Whole(ctx context.Context, s *session.Session, given string) (key string, err error) {
	return one(ctx, s, given, candidate.isNamedBy)
}

// one finds the only value of the best kind of match. Those that do not count are similar names.
func one(ctx context.Context, s *session.Session, given string, counts func(candidate, string) bool) (key string, err error) {
	known, err := s.Models(ctx, session.ConfigClass)
	if err != nil {
		return "", err
	}
	if err := ofAnother(s, given); err != nil {
		return "", err
	}
	given = asInAgent(given)
	listed, err := list(ctx, s, inKeys(given, known), 0)
	if err != nil {
		return "", err
	}
	found := pick(given, known, listed)
	whole := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !counts(c, given) })
	switch {
	case len(whole) == 1:
		return whole[0].Key, nil
	case len(whole) > 1:
		return "", ambiguous(given, whole)
	case len(found) > 0:
		return "", partly(given, found)
	default:
		return "", unknown(ctx, s, given, known)
	}
}

// Wholes is Whole for several texts. The keys are in their order.
func Wholes(ctx context.Context, s *session.Session, given []string) (keys []string, err error) {
	return each(ctx, s, given, Whole)
}

// Values is Value for several texts. The keys are in their order.
func Values(ctx context.Context, s *session.Session, given []string) (keys []string, err error) {
	return each(ctx, s, given, Value)
}

func each(ctx context.Context, s *session.Session, given []string, find Finder) (keys []string, err error) {
	for _, text := range given {
		key, err := find(ctx, s, text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// A Finder is Value or Whole.
type Finder func(ctx context.Context, s *session.Session, given string) (key string, err error)

// ModelsOrValue returns the models that the user means by a name, a pattern such as linux.* or a short name such as routes, or
// the key of a value, as find finds it. A model comes first, but a value with exactly this name comes before the models with a
// short name.
func ModelsOrValue(ctx context.Context, s *session.Session, known session.Catalogue, given string, find Finder) (models session.Catalogue, key string, err error) {
	for _, m := range known {
		if fits, err := path.Match(given, m.Name); err == nil && fits {
			models = append(models, m)
		}
	}
	if len(models) > 0 {
		return models, "", nil
	}
	if models = known.Short(given); len(models) > 0 {
		listed, err := list(ctx, s, given, 0)
		if err != nil {
			return nil, "", err
		}
		if found := pick(given, known, listed); len(found) == 0 || found[0].fits(given) > isName {
			return models, "", nil
		}
	}
	key, err = find(ctx, s, given)
	return nil, key, err
}

// inKeys returns given as keys contain it: the name of a model before it becomes the prefix of
// the model's keys.
func inKeys(given string, known session.Catalogue) string {
	for _, m := range known {
		if name, found := strings.CutPrefix(given, m.Name+"/"); found {
			return m.KeyPrefix + name
		}
	}
	return given
}

// ValueOrKey is Value for commands that also tell something about keys without a value, such as
// explain. A text that has the form of a key is returned unchanged if no value has it. That of a declared value is whole, and no part
// of another one.
func ValueOrKey(ctx context.Context, s *session.Session, given string) (key string, err error) {
	if strings.HasPrefix(asInAgent(given), "config/") {
		return orKey(ctx, s, given, Whole)
	}
	return orKey(ctx, s, given, Value)
}

// WholeOrKey is ValueOrKey with Whole.
func WholeOrKey(ctx context.Context, s *session.Session, given string) (key string, err error) {
	return orKey(ctx, s, given, Whole)
}

func orKey(ctx context.Context, s *session.Session, given string, find Finder) (key string, err error) {
	key, err = find(ctx, s, given)
	if _, absent := err.(session.NotFoundError); absent && session.IsKey(given) { //nolint:errorlint // it is never wrapped
		return asInAgent(given), nil
	}
	return key, err
}

// ofAnother refuses the complete key of another agent than the one that has answered.
func ofAnother(s *session.Session, given string) error {
	label, whole := session.LabelOf("/" + strings.TrimPrefix(given, "/"))
	if own := s.AgentLabel(); whole && own != "" && label != own {
		return session.Usagef("%s is a key of the agent %s, and this one has the label %s", show.Line(given), show.Line(label), show.Line(own))
	}
	return nil
}

// asInAgent returns a key as the agent has it: without a slash at its beginning, and without the prefix of an agent. Other
// texts are unchanged.
func asInAgent(given string) string {
	full := "/" + strings.TrimPrefix(given, "/")
	switch {
	case session.IsFullKey(full):
		return session.ShortKey(full)
	case session.IsKey(given):
		return full[1:]
	}
	return given
}

// A candidate is a value that may be meant.
type candidate struct {
	browse.ListedValue
	model, name string // both are those of Catalogue.ModelAndName
}

// The kinds of matches in the order of the package comment, the best one first.
const (
	isKey = iota
	isName
	isEnd
	isNameFolded
	inName
	inKey
	inDerived
	noMatch
)

// pick returns the values that given means, all with the same kind of match.
func pick(given string, known session.Catalogue, all []browse.ListedValue) (out []candidate) {
	best := noMatch
	for _, v := range all {
		model, name := known.ModelAndName(v.Key)
		c := candidate{v, model, name}
		switch kind := c.fits(given); {
		case kind < best:
			best, out = kind, []candidate{c}
		case kind == best && kind != noMatch:
			out = append(out, c)
		}
	}
	return out
}

// fits returns how given matches the value.
func (c candidate) fits(given string) int {
	name := c.name
	if c.model == "" { // derived values have no name of their own
		name = ""
	}
	switch {
	case given == c.Key:
		return isKey
	case given != "" && given == name:
		return isName
	case name != "" && given == c.model+"/"+name, given != "" && strings.HasSuffix(c.Key, "/"+given):
		return c.orDerived(isEnd)
	case name != "" && strings.EqualFold(given, name):
		return isNameFolded
	case name != "" && contains(name, given):
		return inName
	case contains(c.Key, given):
		return c.orDerived(inKey)
	}
	return noMatch
}

// isNamedBy reports whether given is the key of the value, or ends with its whole name.
func (c candidate) isNamedBy(given string) bool {
	switch c.fits(given) {
	case isKey, isName:
		return true
	case isEnd:
		return strings.HasSuffix(given, "/"+c.name)
	}
	return false
}

// orDerived returns the kind of match, or inDerived for a derived value: a part of its key
// usually is the name of its base, which is meant.
func (c candidate) orDerived(kind int) int {
	if c.Base != "" {
		return inDerived
	}
	return kind
}

// contains reports whether text contains each word, in small or capital letters. Without
// words it is false.
func contains(text, words string) bool {
	text = strings.ToLower(text)
	all := strings.Fields(strings.ToLower(words))
	return len(all) > 0 && !slices.ContainsFunc(all, func(w string) bool { return !strings.Contains(text, w) })
}
