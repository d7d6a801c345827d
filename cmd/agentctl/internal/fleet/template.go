package fleet

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
)

// templateHelp describes FILE.
const templateHelp = "In FILE, ${label} stands for the label, and ${number} for the digits at its end, without leading zeros: 12 of edge-012. $${label} is the\n" +
	"text ${label} itself. FILE is YAML or JSON in the form of apply; a null value removes its key."

// variable is a place in a template: ${NAME}, or $${NAME} for the text itself.
var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// trailing are the digits at the end of a label.
var trailing = regexp.MustCompile(`[0-9]+$`)

// render returns the text of a template for one label.
func render(text, label string) (string, error) {
	var errs []error
	out := variable.ReplaceAllStringFunc(text, func(place string) string {
		if strings.HasPrefix(place, "$$") {
			return place[1:]
		}
		switch place {
		case "${label}":
			return label
		case "${number}":
			digits := trailing.FindString(label)
			if digits == "" {
				errs = append(errs, fmt.Errorf("${number}: the label %s does not end with digits", label))
			}
			if short := strings.TrimLeft(digits, "0"); short != "" {
				return short
			}
			return "0"
		}
		errs = append(errs, fmt.Errorf("%s: expected ${label} or ${number}, or $%[1]s for the text itself", place))
		return place
	})
	return out, errors.Join(errs...)
}

// checkLabel refuses a label whose characters have a meaning in YAML or in keys.
func checkLabel(label string) error {
	for _, c := range label {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", c) {
			return session.Usagef("label %q: expected letters, digits, dots, dashes and underscores", label)
		}
	}
	if label == "" {
		return session.Usagef("a label is empty")
	}
	return nil
}

// changesFor returns the changes of the store for one label. The error documents.ErrIgnored comes with them.
func changesFor(known *models.Registry, file, text, label string) ([]kvdbsync.Pair, error) {
	rendered, err := render(text, label)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	values, err := documents.Of(file, []byte(rendered)).Values(known)
	ignored := errors.Is(err, documents.ErrIgnored)
	if err != nil && !ignored {
		return nil, fmt.Errorf("for the label %s: %w", label, err)
	}
	pairs, wrong := documents.Pairs(values, func(short string) (string, error) { return session.AllAgents + label + "/" + short, nil })
	if wrong != nil {
		return nil, wrong
	}
	return pairs, err
}

// A job is the change of one label.
type job struct {
	label   string
	changes []kvdbsync.Pair
	// What the store had, in the same order; a nil Value: no such key. Set by read.
	before []kvdbsync.Pair
	put    bool // this run has written the changes

	// Set by write, for those who wait. It writes values, whose status was removed before.
	declares bool
	// The published status of the keys that it removes, as it was before; nil: there was none.
	removed map[string][]byte
}

// read reads what the store has now.
func (j *job) read(ctx context.Context, store kvdbsync.Store) error {
	j.before = nil
	for _, c := range j.changes {
		value, err := store.Get(ctx, c.Key)
		if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
			return err
		}
		j.before = append(j.before, kvdbsync.Pair{Key: c.Key, Value: value})
	}
	return nil
}

// differing returns the changes that change something: a run that was interrupted continues
// with these.
func (j *job) differing() (out []kvdbsync.Pair) {
	for i, c := range j.changes {
		if !same(j.before[i], c) {
			out = append(out, c)
		}
	}
	return out
}

// same reports whether two pairs of one key have the same value, or both none.
func same(a, b kvdbsync.Pair) bool {
	if a.Value == nil || b.Value == nil {
		return a.Value == nil && b.Value == nil
	}
	return equal(session.ShortKey(a.Key), a.Value, b.Value)
}

// summary returns the changes for people: "1 to create, 0 to update, 0 to delete".
func (j *job) summary() string {
	create, update, remove := 0, 0, 0
	for i, c := range j.changes {
		switch {
		case same(j.before[i], c):
		case c.Value == nil:
			remove++
		case j.before[i].Value == nil:
			create++
		default:
			update++
		}
	}
	return show.Line(fmt.Sprintf("%d to create, %d to update, %d to delete", create, update, remove))
}
