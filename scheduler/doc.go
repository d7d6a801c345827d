// Package scheduler keeps a system as declared. What is declared are values
// under keys; a [Descriptor] for each sort of value says what a value depends
// on, what is derived from it, and how to create, update, delete and read it
// back. The scheduler works out which of that has to be done, in which order,
// and does it: best effort, with what fails tried again, and with what cannot
// be yet done as soon as it can.
//
// # Use
//
//	s := scheduler.New(scheduler.Options{})
//	links, err := scheduler.Register(s, linkDescriptor)
//	...
//	go s.Run(ctx)
//	v, err := s.Value("config/.../eth1", message) // parsed, validated, prepared
//	record, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want(v)}})
//
// # Model
//
// Under each key something is wanted, or stands, or both. What is wanted comes
// from transactions and, for derived values, from a base value that stands.
// What stands is what verbs did, what Retrieve found, and what the southbound
// was observed to do by itself. Whenever the two differ and the dependencies
// allow it, the scheduler closes the gap. A transaction, a retry, a
// notification and a resync differ only in what they change before that.
//
// # Order
//
// What must go goes first, dependents before what they depend on; then the rest
// comes, dependencies first. A value that does not need what leaves is updated
// in place; it is taken down only when nothing else can move. Values that need
// each other come and go as one. Derived values are created after their base
// and deleted before it. Operations that do not depend on each other run
// concurrently, up to a limit for each southbound. Transactions are processed
// one after the other, in the order of Commit.
//
// # Ownership
//
// Run's goroutine owns the graph. Verbs and Retrieve run on goroutines that Run
// starts and waits for; at most one verb of a key at a time. All other methods
// may be called from any goroutine: Value is pure, Commit waits, Observe,
// Refresh and Retry leave word and return, Statuses and History read immutable
// snapshots that no transaction waits for.
//
// # Testing
//
// The decisions are tested without goroutines in internal/graph. Tests of
// descriptors need a Scheduler and nothing else; all time is that of package
// time, so testing/synctest controls it.
package scheduler
