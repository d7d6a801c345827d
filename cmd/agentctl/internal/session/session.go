// Package session has the parts of agentctl that its commands share: settings, the connections to
// the agent and to stores, the names of models, and errors that decide the exit code.
//
//	s := &session.Session{Streams: streams, Env: os.LookupEnv}
//	s.Flags(root.PersistentFlags())
//	...
//	cmd.RunE = s.WithAgent(func(ctx context.Context, args []string) error {
//		return s.Get(ctx, "/scheduler/status", nil, &statuses)
//	})
//
// A Session serves one command line. It is not safe for concurrent use, and it keeps nothing
// between runs. Package show prints answers.
package session

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/kvdbsync"
)

// TellsChanges is the annotation of commands whose exit code tells whether there are changes, as
// that of "terraform plan -detailed-exitcode". A wrong command line is a failure there.
const TellsChanges = "exit code tells changes"

// ErrChanges ends such commands if there is something to do. It is not printed.
var ErrChanges = errors.New("there are changes")

// A UsageError is a mistake of the command line that only the agent could tell, such as the name
// of a model that it does not have. Nothing was executed.
type UsageError struct{ error }

// Usagef returns a UsageError. Its arguments are those of fmt.Errorf.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// A NotFoundError is a name or key on the command line that the agent does not know. It is a
// kvdbsync.ErrNotFound, which decides the exit code.
type NotFoundError struct{ text string }

// NotFound returns a NotFoundError with this message.
func NotFound(text string) NotFoundError { return NotFoundError{text} }

// Missing is err, as a NotFoundError if the agent says that there is nothing of the name on the command line.
func Missing(err error) error {
	if refused, ok := errors.AsType[StatusError](err); ok && refused.Status == http.StatusNotFound {
		return NotFound(err.Error())
	}
	return err
}

// Error implements error.
func (e NotFoundError) Error() string { return e.text }

// Is makes errors.Is find kvdbsync.ErrNotFound.
func (NotFoundError) Is(target error) bool { return target == kvdbsync.ErrNotFound }

// A linesError has a message of several lines.
type linesError struct{ error }

// Lines returns an error with a message of several lines, all of which are printable. Messages of
// other errors about a store are made printable on one line.
func Lines(err error) error { return linesError{err} }

// A Session is one run of agentctl. The caller sets Streams and Env.
type Session struct {
	Streams
	Env func(string) (string, bool) // looks up an environment variable
	settings

	target *agentClient  // set while a command runs that queries the agent
	types  *typesOfAgent // as target

	storeLabel string // of short keys in the store, once a key was completed
	agentLabel string // that the agent has named in an answer; empty: none has
}

// Streams are the standard streams of a run. The caller owns them.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Lent is true while an editor has the terminal. The interrupts of the keyboard are the
	// editor's then. nil: nobody handles them.
	Lent *atomic.Bool
}

// ExpectArgs returns a check that the command line has one argument for each name. Names in
// brackets are optional; they come last.
func ExpectArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		required := 0
		for _, name := range names {
			if name[0] != '[' {
				required++
			}
		}
		switch {
		case len(args) < required:
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > 0 && len(names) == 0 && cmd.HasSubCommands():
			return UnknownCommand(cmd, args[0])
		case len(args) > 0 && len(names) == 0:
			return fmt.Errorf("unexpected argument %q: expected none", args[0])
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q: expected only %s", args[len(names)], strings.Join(names, " "))
		}
		return nil
	}
}

// ExpectSome returns a check that the command line has at least one argument. name is that of one.
func ExpectSome(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s is missing", name)
		}
		return nil
	}
}

// WithoutChanges returns err, or its errors other than ErrChanges if it joins several; nil: there
// is no other.
func WithoutChanges(err error) error {
	all, joined := err.(interface{ Unwrap() []error }) // this join, not one within
	switch {
	case err == ErrChanges: //nolint:errorlint // it is never wrapped
		return nil
	case !joined:
		return err
	}
	return errors.Join(slices.DeleteFunc(slices.Clone(all.Unwrap()), func(e error) bool { return WithoutChanges(e) == nil })...)
}
