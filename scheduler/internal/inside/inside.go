// Package inside is the view of a scheduler that packages drift, explain, inspect and stats have. It
// keeps the names that only tools need out of package scheduler, and its internals away from
// all other packages.
package inside

import (
	"context"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// Read reads back all values of a descriptor.
type Read = func(context.Context, *kind.Descriptor) ([]kind.Found, error)

// A View is the inside of a scheduler. Any goroutine may use it; no transaction waits for it.
type View struct {
	Registry *kind.Registry
	Executor *executor.Executor // only Running may be called
	Counters *counters.Counters
	// Reader returns a function that reads back all values of a descriptor, which is told the
	// values that are desired now. The function is for any descriptor, or only for one: then it
	// is cheaper. A value that is not ours is Foreign in its result.
	Reader func(only *kind.Descriptor) Read
	// Connections reports by name whether a connection is ready.
	Connections func() map[string]bool
	// Loss returns the numbers of transactions and plans that the transaction log lost.
	Loss func() (transactions, plans uint64)
}
