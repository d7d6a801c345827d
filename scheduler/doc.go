// Package scheduler reconciles the actual state of a system with the desired state.
//
// The desired state is a set of values under keys. A [Descriptor] describes one kind
// of value: its dependencies, its derived values, and the verbs that create, update,
// delete and retrieve it. The scheduler computes the operations that are needed, orders
// them, and runs them. It works best effort: it retries failed operations, and it keeps
// a value pending until its dependencies exist.
//
// The package knows nothing about networks. It can program any system with named items
// and the four verbs. Any [proto.Message] can be a value.
//
// # Use
//
//	s := scheduler.New(scheduler.Options{})
//	links, err := scheduler.Register(s, linkDescriptor) // links looks up metadata by name
//	go func() { ended <- s.Run(ctx) }()
//
//	record, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{
//		scheduler.Want("config/.../eth1", message),
//		scheduler.Unwant("config/.../eth2"),
//	}})
//
//	s.Observe(scheduler.Observed{Key: "link/eth1", Value: up}) // the system changed by itself
//	s.Refresh("link")                                          // it may have changed: read it back
//
// # Model
//
// Each key has a desired value, an actual value, or both. Desired values come from
// transactions; a derived value comes from the desired value of its base. Actual values
// come from the verbs that succeeded, from Retrieve, and from Observe. When the two
// differ and the dependencies allow it, the scheduler runs the verb that closes the gap.
// There is one loop for this. The events below differ only in the state that they change
// before the loop runs:
//
//	transaction       the desired values of some keys
//	Txn.Replace       all desired values (upstream resync)
//	Txn.Refresh       all actual values, as Retrieve reports them (downstream resync; with Replace, full)
//	Observe           the actual values of some keys
//	retry             failed operations may run again
//	Txn.Revert        after a failure: the desired values from before the transaction
//	Connection.Lost   the connection is lost: its values are unknown, its verbs cannot run
//	Connection.Ready  the connection is back: its actual values are read back
//	Plan              as a transaction, but each verb is assumed to succeed, and the changes are undone
//
// Kinds of values:
//
//   - A base value is declared by a transaction.
//   - A derived value is a part of a base value. It has its own key, dependencies and
//     state: it can be pending or failed while its base is configured.
//   - A property is a derived value without a descriptor. It exists while its base
//     exists, so that other values can depend on it.
//   - A value of a descriptor without verbs is only observed.
//   - A Foreign value belongs to somebody else. Values can depend on it; the scheduler
//     never changes it.
//
// Two values conflict if both have a [Claim] on the same resource. The value that holds
// the resource keeps it, so a mistaken declaration does not break a working value. A
// resource without a holder goes to the lowest key. So do two values with one Identity: two
// keys that name the same thing. If the one that has it leaves and the other one is
// equivalent, the other one takes over without a verb.
//
// Create returns metadata, such as the index that the system assigned. The scheduler
// passes it to the other verbs. Others look it up in the [Index] that Register returns.
// The index has a value before any value that depends on it is created.
//
// # What is unknown
//
// A lost connection does not say that its values are gone, and neither does a Retrieve that failed. So the values of
// each kind of a [Connection] are unknown from its loss, or from the start, until Retrieve has reported them:
//
//   - They keep their actual value, metadata, entry in the index, and claims. They are PENDING with the reason
//     (Status.Unknown); no verb is called for them.
//   - What depends on them and exists stays as it is, without an operation and without a new status. What does not
//     exist yet is not created. An Update needs no dependency again that the present version has; a change that needs
//     Delete and Create waits.
//   - What was seen is known: an observed loss withdraws the dependents at once.
//   - An operator's intent counts. A value whose deletion is declared is deleted although a dependent on a lost
//     connection may exist, which is deleted first when it is read back. While that is being read, the deletion waits.
//     The deletion of an unknown value is done when it is known; until then it is PENDING with the last operation DELETE.
//   - A kind whose Retrieve fails stays unknown with the error, and so do those that are to be read after it. They are
//     read again with a back-off.
//   - Values without Retrieve are gone after Connection.Ready, and stand after Connection.ReadyAgain, also at the start
//     of the program; see Memory.
//   - There is no limit of time.
//
// A property, and a derived value without Retrieve, is as known as its base. A missing key that no value has belongs to
// the descriptor of its prefix, or to the one that names the prefix in Properties.
//
// # States
//
//	                Want              dependencies exist: Create
//	    (nothing) --------> PENDING -----------------------------> CONFIGURED --+
//	        ^                  ^                                    |    ^      | Update
//	        |                  +--- a dependency leaves: Delete ----+    +------+
//	        |                  +--- the connection is lost ---------+
//	        |                                                       |
//	        +--- Unwant: Delete ------------------------------------+
//	             (Watch reports REMOVED)
//
//	RETRYING       a verb failed. It runs again after a back-off, or when the value is declared again.
//	               Also: somebody else removes or changes the value repeatedly
//	FAILED         a verb failed. It runs again when the value is declared again, or on Retry
//	INVALID        Validate refuses the desired value; the last valid value may still be applied.
//	               Or another value holds a resource that this one claims; then nothing is applied.
//	               Or a verb says that the system can never have the value (ErrInvalid)
//	UNIMPLEMENTED  no descriptor has the key, or the system lacks a feature that the value needs
//	MISSING        the actual value vanished by itself and is not back yet
//	DISCOVERED     the actual value is ours but not desired (yet); the first Replace removes it
//	OBTAINED       the actual value is not ours: it was observed, or is Foreign
//
// A failed value is FAILED instead of RETRYING if its error is Terminal, its verb was
// abandoned (ErrNoAnswer) or withheld (Txn.Withheld), or the policy of its transaction ends retries. The details of an
// INVALID value are the paths of its bad fields. The details of a PENDING value are the labels of its unmet dependencies;
// Status.Waits has these dependencies.
//
// The transaction that declares a value sets its retry policy. Other transactions, such
// as a resync or one that was undone, neither end the retries of that value nor add to them.
//
// # Reading back
//
// A refresh calls Retrieve for all values. So does a connection that becomes ready, for
// its own values. After a failed verb, only its key and the keys derived from it are
// read back, by RetrieveSome if the descriptor has it. Nothing is after an error of
// reading.Needless. Reading back a base value includes its derived values. A retrieved value that is Equivalent to the desired value
// counts as the desired value. So a resync of a system in sync calls no verb, changes no
// state and publishes nothing, even while some values are pending.
//
// The actual state of a derived value depends on its descriptor:
//
//	it has Retrieve                   Retrieve decides, independently of its base
//	it has verbs, but no Retrieve     it exists if Derived of the retrieved base has its key
//	no verbs, or no descriptor        it exists while its base exists as desired
//
// This has two consequences. Retrieve of a base must report every field from which Derived
// makes values of the second kind. A field that it leaves out counts as lost, and the
// derived value is created again with all values that depend on it. And Equivalent of a
// base must ignore fields that only make derived values. Otherwise each resync would
// update the base while one of them is pending. Package conformance checks both.
//
// # Slow calls
//
// A transaction has 100 ms in which its verbs run and nothing else begins: most have ended by then, and so transactions end in their
// order. The others begin after that, in their order; the slow one goes on when it can. While values are read back, or wait
// for others, nothing waits for that. A transaction ends, and Commit returns, when all operations of its values have ended. So
// transactions may end in another order than they began.
//
// A verb that can be called waits for its turn. At most 16 times as many verbs of one connection as may run at once
// (Options.Concurrency) have left that queue, and those of different transactions leave it by turns. So a value waits
// neither for all values of a large transaction that came before, nor for the many retries of values that the system refuses.
//
//	its verbs are running       its values are PENDING. No other verb of these keys begins. On the
//	                            same connection, no Delete begins beside a Create or Update,
//	                            nor the reverse
//	its connection is read      no verb of this connection begins, and Retrieve waits for those
//	                            that are running. So its result is never older than a verb's.
//	                            If they take more than 1 s, others begin, and the read-back
//	                            comes when those have ended. If it finds verbs running again,
//	                            it waits twice as long, so that it comes in the end. Several
//	                            connections are read one after the other. After a read-back
//	                            for notifications, of which there may be any number, the next
//	                            one waits three times as long, and 0.3 s at most
//	an observation comes        it is newer than a Retrieve that has begun, and wins
//	the connection is lost      what was read is dropped, and all of it is unknown
//
// An operation belongs to the newest transaction that declares or retries its value, even
// if another one made it possible.
//
// A transaction with Revert, and one that refreshes and changes values, runs alone: it
// begins after all others have ended.
//
// # Calls that hang
//
// A verb that does not return within Options.VerbTimeout and a tenth of it (at most 1 s) is
// abandoned, even if it ignores its context. Its value is FAILED with ErrNoAnswer. All
// other values proceed; its dependents wait as after any failure. While the verb is still
// running, no other verb of its key begins, Retrieve and Observe do not change the key, and
// a new desired value waits:
//
//	Create    the item may exist: it keeps its claims, and its dependencies are not deleted.
//	          If values depend on each other, those that were created before stay
//	Update    the old value counts as the actual one
//	Delete    the item may be gone: it meets no dependency
//
// When the verb returns, its result counts. Then the key is read back, if its descriptor
// has Retrieve, and the loop runs. A verb that fails late is RETRYING as usual. Packages
// inspect and explain name a running verb and its age.
//
// A call of Retrieve or RetrieveSome that hangs has failed, and no other one begins while it
// is running. When it returns, its descriptor is read back again. After any other failure it is
// called again within a second, and within a minute if it goes on failing. Descriptors with
// RetrieveAfter wait for that: what they do not find would count as gone.
//
// A descriptor with 8 abandoned verbs that are still running is stalled: its other verbs
// fail and are not called; they are retried as usual. So at most 7 of its
// verbs hang, and as many more as its connection runs at once (Options.Concurrency).
//
// So values whose verbs always outlive the limit, on a busy machine, come to rest as usual:
// each verb is called once.
//
// # Order
//
// A descriptor may rely on these rules:
//
//   - Create and Update of a value begin after all its dependencies were applied. Delete
//     begins after all its dependents were deleted. If deleting a dependent fails, the
//     value stays. Values that depend on each other in a cycle are created one after the
//     other once all of them are desired and nothing else is missing; they are deleted
//     together.
//   - Derived values are created after their base and deleted before it.
//   - Deletions come first. But if the new version of a value does not depend on a value that
//     leaves, it is updated in place: after its new dependencies were applied and before its
//     old ones leave. It is deleted and created again only if nothing that it waits for,
//     directly or not, can proceed or is running.
//   - A value whose descriptor has MakeBeforeBreak is deleted last if nobody desires it any
//     more: after all that the transaction creates and updates. So a successor under another
//     key takes over without a gap. The deletion comes first as usual if a dependency of the
//     value leaves, or if it has claims. Derived values follow their base. A successor that
//     fails or stays pending does not keep the old value, unless the transaction reverts. Nor
//     does a slow call on another connection (see above).
//   - A change that needs Delete and Create also deletes the dependents and creates them
//     again.
//   - A dependency on any of several keys holds while one of them exists. It moves from
//     one key to another without an operation.
//   - After a failed Delete, the value meets no dependency until reading it back shows that
//     it stays. So its dependents are not created only to be deleted again.
//   - A plan changes nothing.
//   - At most one verb of a key runs at a time, including abandoned ones. Independent
//     operations begin in the order of the transaction and run concurrently, up to a limit
//     per connection.
//   - A value that is equivalent to the actual value needs no operation.
//   - Transactions, notifications and retries begin one after the other; transactions begin
//     in the order of Commit. The next one begins when the last one has ended or is slow.
//
// In return, verbs must be repeatable: Create after a Create with a lost answer, and
// Delete of an item that is already gone, are not errors. A verb that panics has failed;
// its error has the stack, and the scheduler goes on.
//
// # Goroutines
//
// Register and Connection come before Run, and Run is called once. Run starts all goroutines
// and waits for them. Its own goroutine owns the graph. Each connection has goroutines that
// call verbs; they live while there is work. Each Retrieve has one. A connection has one
// Retrieve at a time, while none of its verbs is running except abandoned ones.
// The transaction log has one goroutine. No transaction waits for it, except for a plan
// that must be written first: see package txnlog. When the context of Run ends, so do
// the contexts of the running verbs; Run waits at most 5 s for them, not for abandoned
// ones, and returns. Dump of package inspect calls Retrieve at any time.
//
// Run's goroutine owns the graph. Plan uses it, on the goroutine of its caller, while Run is
// idle. When there is something to do, Plan is interrupted: it undoes its changes, and begins
// again later.
//
// All other methods may be called from any goroutine. A verb must not call the methods
// that wait for the loop.
//
//	pure                 Value, Decode, Validate, Descriptors, and a Descriptor's functions that are not verbs
//	wait for the loop    Commit, Plan, Retry, Sync; Submit and Start until their transaction begins
//	leave a message      Observe, Refresh, Connection.Lost, Connection.Ready; the newest per key counts, none is lost
//	read a snapshot      Status, Statuses, All, History, Index, packages drift, inspect and stats; no transaction waits for them
//	wait for changes     Watch, Index.Watch; a slow reader gets the newest per key, and misses none
//
// A wrong call returns an error that names the mistake, and has no effect: a Value of
// another Scheduler, a Change with another key than its Value, Register after Run, an
// unknown name; see [ErrMisuse].
//
// No queue can overflow. Pending observations, changes and requests are bounded by the
// number of keys, not by the rate of changes. A program that watches a system which
// drops notifications calls Refresh.
//
// A message that was given to Value, yielded by Retrieve or observed is shared. Nobody
// may change it.
//
// # Names and keys
//
// A descriptor gets whole keys, because a key also says which descriptor it belongs to: a
// verb of one descriptor often names the keys of others, in Dependencies and Derived. The
// name of a value is its key without the prefix of its descriptor; [Index] and package
// inspect use names. In a callback, [models.Model.NameOf] returns the name in a key of a
// model. A descriptor with a Prefix parses the rest of the key itself, with the function
// that also makes the key.
//
// # Errors
//
// An error that a program may distinguish is a variable or a type; errors.Is and errors.As
// find them in the errors of Commit, in records and in statuses:
//
//	ErrMisuse          the call can never be right; its text names the mistake
//	ErrInvalid         the value is wrong; it wraps a *models.FieldError for each field
//	ErrUnimplemented   no descriptor has the key, or the system lacks a feature
//	ErrNoAnswer        the verb hangs and was abandoned
//	ErrUnsettled       Plan was interrupted too often
//	ErrStopped         Run has ended
//	*TxnError          the values that failed in a transaction, each as a KeyError
//	KeyError           the failure of one value, with its key and its verb
//
// Errors of verbs are in them unchanged, so a descriptor may have error types of its own.
// History and the transaction log keep texts only.
//
// # Tests
//
// internal/graph tests the decisions without goroutines: scripts in text, and random
// graphs compared with a model. The scripts in testdata drive a whole Scheduler. All
// time comes from package time, so testing/synctest controls it.
//
// Test your own descriptor with package conformance. Test its values together with
// others on a Scheduler over a system in memory; examples/skeleton has both.
//
// # Stability
//
// The exported names of this package and of its packages changes, conformance, drift,
// explain, inspect, stats, txnlog and wait follow semantic versioning: only a new major version
// removes a name or changes its meaning.
// Texts of errors, logs and the transaction log may change at any time.
//
// # Files in reading order
//
//	descriptor.go, value.go, claim.go     descriptors, and the values of their keys
//	txn.go, record.go, operation.go       transactions and their records
//	operations.go, packed.go              records in little memory
//	scheduler.go, next.go                 the loop, and the work that it waits for
//	run.go, drive.go                      one pass of the loop, and passes that overlap
//	refresh.go                            runs that read back
//	observe.go, late.go                   other changes of the actual state
//	retry.go                              repeated failures
//	connection.go                         connections that can be lost
//	plan.go, noops.go                     plans; changes without a verb in records
//	memory.go                             values that survive a restart
//	publish.go, status.go, index.go, watch.go    snapshots for readers
//	untyped.go                            descriptors without types
//	internal/kind, internal/intent        values of descriptors; how changes become desired
//	internal/published, internal/history  published states, and records
//	internal/graph, internal/readback     all decisions; calls of Retrieve
//	internal/executor, internal/memory    calls of verbs; remembered values
//	internal/retry                        times of retries; values that somebody else insists on
//	txnlog, explain, wait, changes, drift, conformance    on top of the API
package scheduler
