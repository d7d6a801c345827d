package declare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/names"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// storeHelp says how commands about single values reach the place where these are kept.
const storeHelp = "Stores are reached through the agent's socket, and etcd also directly (-e), if the socket does not have it. Values in files (filedb,\n" +
	"initfile) are refused, with the file and line to edit."

// holders returns the sources that hold a key, the highest priority first.
func (c *change) holders(ctx context.Context, key string) (out []wire.Declaration, err error) {
	err = c.Get(ctx, "/sources", url.Values{"key": {key}}, &out)
	return out, err
}

// winner returns the source whose value of a key takes effect.
func (c *change) winner(ctx context.Context, key string) (string, error) {
	held, err := c.holders(ctx, key)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(held, func(d wire.Declaration) bool { return d.Wins })
	if at < 0 {
		return "", fmt.Errorf("no source has a valid value of %s", show.Line(key))
	}
	return held[at].Source, nil
}

// inStore calls do with the store that the source is.
func (c *change) inStore(ctx context.Context, do func(session.EditableStore) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout+answerTime)
	defer cancel()
	store, end, err := c.OpenSource(ctx, c.source)
	if err != nil {
		return err
	}
	defer end()
	err = do(store)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the store %s does not answer: %w", show.Line(c.source), err)
	}
	return err
}

// perform makes the change of the text in the source, after printing its effect. key is one of its keys.
func (c *change) perform(ctx context.Context, key string, deadline time.Time) error {
	store, err := c.isStore(ctx, key)
	if err != nil {
		return err
	}
	if !store {
		return c.declareText(ctx, deadline)
	}
	return c.inStore(ctx, func(store session.EditableStore) error { return c.write(ctx, store, c.KeyInStore, deadline) })
}

// sourceFlag adds the flag --source to a command about single values. help says what it is for.
func (c *change) sourceFlag(cmd *cobra.Command, help string) {
	cmd.Flags().StringVar(&c.source, "source", "", help)
	_ = cmd.RegisterFlagCompletionFunc("source", names.CompleteSource(c.Session)) // fails only without the flag
}

// A pair is a value in a document; null withdraws it.
type pair struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// use makes pairs the text of the change. Errors about them name name in place of a file.
func (c *change) use(name string, pairs []pair) (err error) {
	c.text, err = json.Marshal(pairs)
	c.from = documents.Of(name, c.text)
	return err
}

// isStore tells a store from a layer of the agent. A source that takes no change of the key is refused: files, and stores that
// nothing reaches. Otherwise the user would learn that after the work.
func (c *change) isStore(ctx context.Context, key string) (bool, error) {
	if c.source == "filedb" {
		return false, c.ofFile(ctx, key)
	}
	err := c.inStore(ctx, func(session.EditableStore) error { return nil })
	if err == nil || c.source == "etcd" {
		return true, err
	}
	return false, c.isLayer(ctx, key, err)
}

// isLayer refuses a source that is no layer. noStore is why it is not reached as a store.
func (c *change) isLayer(ctx context.Context, key string, noStore error) error {
	// The agent refuses also a change of nothing in what is no layer.
	err := c.Request(ctx, http.MethodPut, "/configuration", url.Values{"datasrc": {c.source}}, []byte("[]"), &wire.Nothing{})
	if refused, ok := errors.AsType[session.StatusError](err); !ok || refused.Status != http.StatusBadRequest {
		return err
	}
	key, source := show.Line(key), show.Line(c.source)
	switch {
	case c.source == "initfile":
		return fmt.Errorf("%s is in the initial file, which the agent reads when it starts: edit the file that initial-configuration-file-path in initfileregistry.conf names, and restart the agent", key)
	case !errors.Is(noStore, kvdb.ErrNoStore):
		return fmt.Errorf("%s is in the store %s, which is reached only through the agent's socket: %w", key, source, noStore)
	}
	return fmt.Errorf("%s is in %s, which takes no changes: %w", key, source, err)
}

// ofFile returns the error for a value in a file. A file has comments and other values, which a change of one value
// would lose. The store refuses a write with the place of the key.
func (c *change) ofFile(ctx context.Context, short string) error {
	store := kvdb.NewClient(c.Socket, c.source)
	defer store.Close()
	key, err := c.FullKey(ctx, store, short)
	if err != nil {
		return err
	}
	value, err := store.Get(ctx, key)
	if err == nil {
		err = store.Put(ctx, key, value) // what it has: the answer is the place, and nothing could change
	}
	_, place, known := strings.Cut(fmt.Sprint(err), ": edit ")
	place, _, _ = strings.Cut(place, ", where ")
	at := strings.LastIndexByte(place, ':')
	if !known || at < 0 {
		return fmt.Errorf("%s is in a file of filedb: expected an edit of that file (agentctl plan FILE --as filedb:FILE shows its effect)", show.Line(short))
	}
	file, line := printable.Word(place[:at]), printable.Word("+"+place[at+1:])
	return fmt.Errorf("%s is in a file, which the agent only reads. Edit the file; the agent follows when it is saved:\n  %s %s %s", show.Line(short), c.editor(), line, file)
}

// editor returns the command of the user's editor.
func (c *change) editor() string {
	visual, _ := c.Env("VISUAL")
	editor, _ := c.Env("EDITOR")
	return cmp.Or(visual, editor, "vi")
}
