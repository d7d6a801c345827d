package session

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

// completeWithin is how long a shell waits for the words that could follow on a command line.
// A user who types does not wait longer.
const completeWithin = time.Second

// Complete returns the words that ask finds at the agent, for the completion of a command line
// by a shell. The settings are those of the flags that the line already has. After one second or
// with an error it returns the reason as a hint, which bash and zsh show in place of words.
func (s *Session) Complete(cmd *cobra.Command, ask func(ctx context.Context, s *Session) ([]string, error)) (out []string) {
	fresh, err := s.forCompletion(cmd)
	if err != nil {
		return hint(nil, err)
	}
	err = fresh.WithAgent(func(ctx context.Context, _ []string) (err error) {
		out, err = ask(ctx, fresh)
		return err
	})(cmd, nil)
	return hint(out, err)
}

// hint returns the words that a shell can show, with an error as a hint. A word may have a description after a tab.
func hint(out []string, err error) []string {
	out = slices.DeleteFunc(out, func(w string) bool {
		word, description, _ := strings.Cut(w, "\t")
		return word != printable.Line(word) || description != printable.Line(description)
	})
	if err == nil {
		return out
	}
	return cobra.AppendActiveHelp(out, "agentctl: "+printable.Line(err.Error()))
}

// CompleteKey returns keys of the store that begin with given, in the same form: complete, or
// without the label of the agent. Otherwise it is Complete.
func (s *Session) CompleteKey(cmd *cobra.Command, given string) (out []string) {
	fresh, err := s.forCompletion(cmd)
	if err != nil {
		return hint(nil, err)
	}
	err = fresh.WithStore(func(ctx context.Context, store kvdbsync.Store, _ []string) error {
		full := given
		if given == "" || !strings.Contains(given, "/") { // a folder or label that is not complete
			full = "config/"
		}
		full, err := fresh.FullKey(ctx, store, full)
		if err != nil {
			return err
		}
		pairs, err := keysOf(ctx, store, full)
		for _, p := range pairs {
			key := p.Key
			if !IsFullKey(given) {
				key = ShortKey(key)
			}
			if strings.HasPrefix(key, given) {
				out = append(out, key)
			}
		}
		return err
	})(cmd, nil)
	return hint(out, err)
}

// keysOf lists keys, without their values if the store can do that.
func keysOf(ctx context.Context, store kvdbsync.Store, prefix string) ([]kvdbsync.Pair, error) {
	if c, ok := store.(*kvdb.Client); ok {
		return c.Keys(ctx, prefix)
	}
	return store.List(ctx, prefix)
}

// CompleteStore returns the names of stores: those of the agent, and etcd, which needs none.
func (s *Session) CompleteStore(cmd *cobra.Command) []string {
	fresh, err := s.forCompletion(cmd)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	c := kvdb.NewClient(fresh.Socket, "")
	defer c.Close()
	names, err := c.Stores(ctx)
	if err == nil && !slices.Contains(names, "etcd") {
		names = append(names, "etcd")
	}
	return hint(names, nil)
}

// forCompletion returns a session with the settings of a command line that is not complete.
// It prints nothing.
func (s *Session) forCompletion(cmd *cobra.Command) (*Session, error) {
	fresh := &Session{Streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, Env: s.Env}
	fresh.file, fresh.dir = s.file, s.dir
	if err := fresh.Load(cmd.Flags()); err != nil {
		return nil, err
	}
	fresh.Timeout = min(fresh.Timeout, completeWithin)
	return fresh, nil
}
