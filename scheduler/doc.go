// Package scheduler keeps a system as declared. What is declared are values
// under keys; a [Descriptor] for each sort of value says what a value depends
// on, what is derived from it, and how to create, update, delete and read it
// back. The scheduler works out which of that has to be done, in which order,
// and does it: best effort, with what fails tried again, and with what cannot
// be yet done as soon as it can.
//
// It knows nothing of networks. Any system will do whose items can be named and
// have the four verbs, and any [proto.Message] is a value.
//
// # Use
//
//	s := scheduler.New(scheduler.Options{})
//	links, err := scheduler.Register(s, linkDescriptor) // links finds metadata by name
//	go func() { ended <- s.Run(ctx) }()
//
//	v, err := s.Value("config/.../eth1", message) // validated and prepared, by any goroutine
//	record, err := s.Commit(ctx, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want(v)}})
//
//	s.Observe(scheduler.Observed{Key: "link/eth1", Value: up}) // the system changed by itself
//	s.Refresh("link")                                          // it may have: read it back
//
// # Model
//
// Under each key something is wanted, or stands, or both. What is wanted comes
// from transactions and, for derived values, from the base that they are derived
// from. What stands is what verbs did, what Retrieve found, and what the system
// was observed to do by itself. Whenever the two differ and the dependencies
// allow it, the scheduler closes the gap. Everything is that one loop; what
// happens differs only in what it changes before the loop runs:
//
//	transaction       what is wanted, under some keys
//	Txn.Replace       what is wanted, as a whole (upstream resync)
//	Txn.Refresh       what stands, as Retrieve finds it (downstream resync; with Replace, full)
//	Observe           what stands, under some keys
//	retry             what failed no longer rests
//	Txn.Revert        after a failure: what was wanted before is wanted again
//	Group.Lost        nothing stands behind that connection, and nothing there can run
//	Group.Ready       it can; what stands there is read back
//	Plan              as for the transaction, but every verb only succeeds, and then all is forgotten
//
// Values differ by where they come from. A base value is declared. A derived
// value is a part of a base with a key, dependencies and a fate of its own: it
// may wait or fail while its base stands. A derived value whose key no
// descriptor has is a property: it stands when its base does, so that others can
// depend on it. What a descriptor without verbs has is only noticed. What is
// Foreign is depended on but never touched.
//
// Values that cannot stand at once say so by a [Claim] on what both want. Who has it keeps
// it, so that what works does not go for what is declared by mistake; where nobody has it,
// it is for the lowest key.
//
// What Create learns is the value's metadata, such as the number that the system
// gave it. The other verbs are given it back; who else needs it finds it in the
// [Index] that Register returns: it has what stands, before anything is created
// that depends on it.
//
// # States
//
//	            Want              dependencies stand: Create
//	(nothing) --------> PENDING -----------------------------> CONFIGURED --+
//	    ^                  ^                                    |    ^      | Update
//	    |                  +--- one of them leaves: Delete -----+    +------+
//	    |                  +--- the group is lost --------------+
//	    |                                                       |
//	    +--- Unwant: Delete ------------------------------------+
//	         (REMOVED, as Watch says)
//
//	RETRYING       a verb failed; it is called again after a back-off, or when the value is declared anew;
//	               or somebody else removes it again and again (ErrContested)
//	FAILED         a verb failed; it is called again when the value is declared anew or somebody says Retry or TryAgain
//	INVALID        Validate refuses what is wanted; what was valid before may stand. Or another
//	               value has what it claims: then nothing stands
//	UNIMPLEMENTED  no descriptor has the key, or a verb says that the system lacks what it takes
//	MISSING        what stood has vanished by itself, and is not back yet
//	DISCOVERED     stands and is ours, but nobody wants it (yet); removed from the first Replace on
//	OBTAINED       stands and is not ours: noticed, or Foreign
//
// A failed value is FAILED instead of RETRYING if its error is [Terminal], or
// the transaction's [Retry] says so. Details of an INVALID value are the paths of
// its bad fields, those of a PENDING one the labels of what it waits for;
// [Status.Waits] has the dependencies themselves.
//
// Who declares a value says how it is tried again. A resync, or any other transaction that does
// not name the value, neither ends its retries nor adds to them.
//
// # Reading back
//
// Retrieve is called for all values in a refresh, and when a connection is ready. After a failed
// verb only its key and the keys derived from it are judged, by RetrieveSome where there is one.
// To read back a base value is to read back its derived values too. What is found counts as what
// is wanted if it is Equivalent to that. So a resync of a system in sync calls no verb, changes no
// state and publishes nothing, also while values and derived values wait.
//
// How a derived value is judged depends on its descriptor:
//
//	Retrieve                      by that alone, whatever is found of its base
//	verbs, but no Retrieve        it stands if Derived of the base, as it was found, has its key
//	no verbs, or no descriptor    it stands while its base stands as wanted
//
// Two rules follow. Retrieve of a base shows all fields from which Derived makes values of the
// second sort; what it does not show is taken for lost, and is created again with all that depends
// on it. And Equivalent of a base leaves out fields that only make derived values: one that waits
// is not found, and the base would be updated by every resync. Package conformance checks both.
//
// # Order
//
// A descriptor may rely on this:
//
//   - Create and Update of a value begin after those of all that it depends on
//     have succeeded. Delete of a value begins after those of all that depends on
//     it have succeeded; where one fails, what is below it stays. In a ring of
//     values that need each other somebody has to be first: they come one after
//     the other, when all are wanted and nothing else is missing, and leave
//     together.
//   - Derived values are created after their base and deleted before it.
//   - What must go goes first, then the rest comes. But a value whose new version
//     does not need what leaves is updated in place, after what it newly needs
//     stands and before what it used leaves. Only when nothing else can move is it
//     taken down instead.
//   - A change that needs Delete and Create takes down what depends on the value,
//     and puts it up again.
//   - A dependency on any of many keys holds as long as one of them stands. It
//     moves from one to another without an operation.
//   - A value that had to go and whose Delete failed meets no dependency, until it is
//     clear that it stays. So its dependents do not come only to go again.
//   - A plan changes nothing, whenever it is made.
//   - There is at most one verb of a key at a time. Operations that do not depend
//     on each other begin in the order of the intent, and run concurrently, up to
//     a limit for each southbound.
//   - A value that is equivalent to what stands costs no operation.
//   - Transactions, notifications and retries are processed one after the other;
//     transactions in the order of Commit.
//
// In return, verbs may be called again: Create after one whose answer was lost,
// Delete of what has gone by itself. Neither is an error. A verb that panics has
// failed, with the stack in its error, and the scheduler goes on.
//
// # Ownership
//
// Register and Group come before Run, which can be called once. It starts what goroutines there are, and
// waits for them: its own owns the graph and calls Retrieve, while no verb runs;
// those of each southbound call verbs, and last while there is work; one writes
// to Options.Out, which no transaction waits for but one whose plan is to be written
// first: see Options.Simulate. When the context of Run ends so
// do those of the verbs in flight; Run waits for them, and returns. Look calls
// Retrieve too, on the goroutine of its caller, whatever else runs.
//
// All other methods may be called from any goroutine, but not from a verb if
// they wait for the loop:
//
//	pure                 Value, Decode, Validate, Descriptors, and the functions of a Descriptor that are not verbs
//	wait for the loop    Commit, Plan, TryAgain, Wait; Submit until its transaction begins
//	leave word           Observe, Refresh, Retry, Group.Lost, Group.Ready; of one key the newest counts, none is lost
//	read snapshots       Status, Statuses, Explain, History, Stats, Index; no transaction waits for them
//	read the system      Look; no transaction waits for it
//	wait for changes     Watch, Index.Watch; a slow reader gets the newest of each key, and misses none
//
// A call that cannot be right is refused with an error that names the mistake: a Value of
// another Scheduler, a Change whose key is not its Value's, Register after Run, an unknown
// name. Those errors are listed with [ErrRunning]. Nothing of such a call is done.
//
// No queue can be full: what waits to be read, of observations, of changes or of
// what was asked for, is bounded by the number of keys and not by how often they
// change. Whoever watches a system that does drop notifications says Refresh.
//
// Messages belong to everyone once they have been given to Value, yielded by
// Retrieve or observed: nobody changes them.
//
// # Testing
//
// The decisions are tested without goroutines in internal/graph: stories in
// text, and random graphs against a model. Stories in testdata drive a whole
// Scheduler. All time is that of package time, so testing/synctest controls it.
//
// A descriptor of your own is tested with package conformance, and with a
// Scheduler over a southbound in memory where its values meet others;
// examples/skeleton has both.
package scheduler
