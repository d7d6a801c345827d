// Package inside is the view of a scheduler that packages actual, changes, drift, explain, inspect
// and stats have. It keeps the names that only tools need out of package scheduler, and its
// internals away from all other packages.
package inside

import (
	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
	"github.com/keyplane/keyplane/scheduler/internal/value"
	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// A View is the inside of a scheduler; S is its type of statuses, and D that of dependencies. Any goroutine may use it; no
// transaction waits for it.
type View[S, D any] struct {
	Registry *kind.Registry
	Executor *executor.Executor // only Running may be called
	Counters *counters.Counters
	Reader   *readback.Reader // only Collect may be called
	// Remembers reports whether the memory has a key.
	Remembers func(key string) bool
	// Recent begins to collect the changes of up to most values, and Status returns one of them as
	// readers see it.
	Recent func(most int) *watch.Recent[*published.Status]
	Status func(*published.Status) S
	// Same reports whether the value has not changed between two statuses of it, neither of which
	// is nil.
	Same func(a, b S) bool
	// Dependencies returns dependencies of the graph in their public form.
	Dependencies func([]value.Dep) []D
	// Loss returns the numbers of transactions and plans that the transaction log lost.
	Loss func() (transactions, plans uint64)
}
