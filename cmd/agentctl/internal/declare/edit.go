package declare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// editTime is how long an editor may stay open.
const editTime = 24 * time.Hour

// An editing is one value that a user edits.
type editing struct {
	change
	key    string
	before wire.Export // the value in its source
	stored []byte      // the bytes of the value in its store
	store  bool        // the source is a store of the agent; otherwise it is a layer
}

// edit returns the command that opens a value in an editor.
func edit(s *session.Session) *cobra.Command {
	e := editing{change: change{Session: s}}
	cmd := &cobra.Command{
		Use:   "edit VALUE",
		Short: "Edits a declared value in an editor",
		Long: "Edit opens VALUE (a key or a name) in $VISUAL or $EDITOR (default vi) as YAML, and stores the result where\n" +
			"the value comes from: in the store or the data source that takes effect, or in --source. An invalid value is not stored: the editor\n" +
			"opens again, with the errors as comments at the top. A text that is invalid and unchanged, or empty, ends the command. If the value\n" +
			"has changed in its source while the editor was open, it is not overwritten. An edited text that is not stored stays in a file, which\n" +
			"the error names.\n\n" +
			storeHelp,
		Example:           "  agentctl edit veth1\n  EDITOR=nano agentctl edit config/linux/interfaces/v2/interface/veth1 --source redis",
		ValidArgsFunction: names.CompleteValue(s),
		Args:              session.ExpectArgs("VALUE"),
	}
	e.sourceFlag(cmd, "edit the value of this store or data source (default: the one that takes effect)")
	cmd.RunE = s.WithAgentUntil(editTime, func(ctx context.Context, args []string) error {
		if err := e.find(ctx, args[0]); err != nil {
			return err
		}
		return e.run(ctx)
	})
	return cmd
}

// find finds the value, its source and its text.
func (e *editing) find(ctx context.Context, given string) (err error) {
	if e.key, err = names.Whole(ctx, e.Session, given); err != nil {
		return err
	}
	if e.source == "" {
		if e.source, err = e.winner(ctx, e.key); err != nil {
			return err
		}
	}
	if e.store, err = e.isStore(ctx, e.key); err != nil {
		return err
	}
	if e.store {
		// Before the text: a change between the two is then found.
		if e.stored, err = e.bytes(ctx); err != nil {
			return err
		}
	}
	if e.before, err = e.now(ctx); err != nil || e.store {
		return err
	}
	if len(e.before.Hidden) > 0 {
		// Nor has the value a version, so somebody else's change would be lost.
		return fmt.Errorf("the secrets of %s are hidden from this user, so its text could not be stored: expected the agent's socket, or a user with the permission secrets", show.Line(e.key))
	}
	return nil
}

// bytes returns the value as its store has it.
func (e *editing) bytes(ctx context.Context) (value []byte, err error) {
	err = e.inStore(ctx, func(store session.EditableStore) error {
		full, err := e.KeyInStore(ctx, store, e.key)
		if err != nil {
			return err
		}
		value, err = store.Get(ctx, full)
		if errors.Is(err, kvdbsync.ErrNotFound) {
			err = fmt.Errorf("%w: %s: does the agent use another %s?", err, full, e.source)
		}
		return err
	})
	return value, err
}

// now returns the value in its source, as YAML. Who may not see secrets gets it without them.
func (e *editing) now(ctx context.Context) (wire.Export, error) {
	query := url.Values{"key": {e.key}, "source": {e.source}, "format": {"json"}, "secrets": {"1"}}
	var out wire.Export
	err := e.Get(ctx, "/configuration", query, &out)
	if refused, ok := errors.AsType[session.StatusError](err); ok && refused.Status == http.StatusForbidden {
		query.Del("secrets")
		err = e.Get(ctx, "/configuration", query, &out)
	}
	return out, err
}

// run opens the editor until the value is valid or the user gives up. An edited text that is not stored
// stays in its file: it may be the work of an hour.
func (e *editing) run(ctx context.Context) error {
	file, err := e.file()
	if err != nil {
		return err
	}
	err = e.editIn(ctx, file)
	if now, unreadable := os.ReadFile(file); err != nil && unreadable == nil && e.isEdited(string(now)) {
		return fmt.Errorf("%w\nyour text is in %s", err, printable.Word(file))
	}
	os.Remove(file)
	return err
}

// file makes the file that the user edits. Only the user can read it.
func (e *editing) file() (path string, err error) {
	f, err := os.CreateTemp("", "agentctl-*.yaml") // mode 0600
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// isEdited reports whether a text is other than that of the value, and not empty.
func (e *editing) isEdited(text string) bool {
	content := withoutComments(text)
	return content != withoutComments(e.before.Text) && strings.TrimSpace(content) != ""
}

// editIn lets the user edit the value in a file, and stores it.
func (e *editing) editIn(ctx context.Context, file string) error {
	text, last := e.before.Text, ""
	for {
		edited, err := e.open(ctx, file, text)
		if err != nil {
			return err
		}
		if !e.isEdited(edited) {
			_, err := io.WriteString(e.Out, "Nothing was changed.\n")
			return err
		}
		content := withoutComments(edited)
		if content == last {
			return errors.New("nothing was changed, because the value is still invalid")
		}
		last = content
		value, wrong := e.check(ctx, last)
		if wrong == nil {
			return e.keep(ctx, value)
		}
		fmt.Fprintf(e.Err, "agentctl: %s\n", show.Remote(wrong.Error()))
		text = asComments(wrong.Error()) + last
	}
}

// open writes a text into the file, and lets the user edit it.
func (e *editing) open(ctx context.Context, file, text string) (string, error) {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	editor := e.editor()
	// The variable may have arguments, so a shell splits it, as git does.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, editor, file) //nolint:gosec // the user chooses the editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out, e.Err
	if e.Lent != nil {
		e.Lent.Store(true)
		defer e.Lent.Store(false)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("nothing was changed: the editor %s: %w", editor, err)
	}
	edited, err := os.ReadFile(file)
	return string(edited), err
}

// check validates a text, which must be one value under the same key, and prints its effect.
func (e *editing) check(ctx context.Context, text string) (value []byte, err error) {
	e.text, e.from = []byte(text), nil
	p, err := e.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.from.Invalid("invalid", p.Invalid); err != nil {
		return nil, err
	}
	all, err := documents.Read(bytes.NewReader(e.text), []string{"-"})
	if err != nil {
		return nil, err
	}
	values, err := e.values(ctx, all)
	switch {
	case err != nil:
		return nil, err
	case len(values) != 1 || values[0].Key != e.key || values[0].Message == nil:
		return nil, fmt.Errorf("the text has other values than %s: expected this one value", e.key)
	}
	if value, err = models.JSON(values[0].Message); err != nil {
		return nil, err
	}
	return value, e.show(p)
}

// keep stores the value, unless it has changed in its source since it was read.
func (e *editing) keep(ctx context.Context, value []byte) error {
	if e.store {
		return e.replace(ctx, value)
	}
	query := url.Values{"datasrc": {e.source}, "version": {e.before.Version}}
	err := e.Request(ctx, http.MethodPut, "/configuration", query, e.text, &wire.Nothing{})
	if refused, ok := errors.AsType[session.StatusError](err); ok && refused.Status == http.StatusPreconditionFailed {
		return e.changed()
	}
	return e.done(err)
}

// replace stores the value. The store compares and writes in one step.
func (e *editing) replace(ctx context.Context, value []byte) error {
	return e.inStore(ctx, func(store session.EditableStore) error { return e.replaceIn(ctx, store, value) })
}

// replaceIn stores the value in its store.
func (e *editing) replaceIn(ctx context.Context, store session.EditableStore, value []byte) error {
	full, err := e.KeyInStore(ctx, store, e.key)
	if err != nil {
		return err
	}
	stored, err := store.PutIfSame(ctx, full, e.stored, value)
	if err != nil || stored {
		return e.done(err)
	}
	now, err := store.Get(ctx, full)
	if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
		return errors.Join(e.changed(), err)
	}
	other := show.Change{Key: e.key, Symbol: show.Updates, Before: e.shown(full, e.stored), After: e.shown(full, now)}
	if err != nil {
		other.Symbol, other.After = show.Deletes, nil
	}
	return errors.Join(e.changed(), show.Changes(e.Err, e.Env, "Changed by others in "+e.source, []show.Change{other}, 0))
}

// changed returns the error for a value that others have changed.
func (e *editing) changed() error {
	return fmt.Errorf("nothing was changed, because %s has changed in %s meanwhile", e.key, e.source)
}

// done tells the user the result of storing the value.
func (e *editing) done(err error) error {
	if err != nil {
		return e.refused(err)
	}
	_, err = fmt.Fprintf(e.Out, "Stored in %s.\n", show.Line(e.source))
	return err
}

// withoutComments returns a text without the lines that begin with #.
func withoutComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// asComments returns a text as comments of YAML.
func asComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("# " + show.Line(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return out.String()
}
