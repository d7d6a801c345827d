// Package statestore keeps keys and values in a folder, so that a program still has
// them after it was killed at any moment.
//
//	s, err := statestore.Open("/var/lib/keyplane/vpp1/applied", statestore.Options{Log: log})
//	go s.Run(ctx)
//	...
//	err = s.Save(maps.All(map[string][]byte{"key": value, "gone": nil}))
//	...
//	err = s.Close()
//
// Both the scheduler and the orchestrator keep their state in a Store each: *Store is a
// scheduler.Memory and an orchestrator.Memory. [WriteFile] is for single small files.
//
// # Guarantees
//
//   - What Save or Record has written survives SIGKILL: it is appended by write(2), and the
//     page cache outlives the process. The changes of one call are there all or none.
//   - A loss of power is different. Run calls fdatasync within [Pause] after a change, so a
//     loss of power may take the changes of about the last second.
//   - A Store is either complete or marked as stale. While the disk takes nothing (it is full,
//     for example) the Store is marked before Save returns, the changes are kept in memory,
//     and Run tries again. [Store.Stale] tells the next start. Only Renew, or writing
//     everything that was missing, ends the mark.
//   - A file that was damaged or shortened makes the Store stale, too. It is renamed to
//     NAME.broken, what it still shows is used, and the log says what that affects.
//
// # Files
//
//	snapshot     all that was known when it was written; replaced atomically, with fsync
//	journal.N    the changes since; a snapshot of generation N needs journal.N and later ones
//	complete     an empty file: the other files have everything
//
// The mark of a stale Store is that complete is absent: a full disk still allows to remove a
// file, and a folder that was emptied has no mark that it is good. Each journal has up to
// 1 MiB of disk reserved ahead, so a full disk is noticed late.
//
// Both kinds of files begin with a header of 32 bytes: a magic text, the generation, and a
// length below which the file was never cut by a kill. Records follow: length, CRC-32C,
// changes. A record that a kill has cut short is the last one in its file, and is dropped:
// nobody was told that it is there. When the journals outgrow the snapshot, Run merges them
// in the background, reading the files again. So the Store has no second copy of the values
// in memory.
//
// # Ownership
//
// A folder belongs to one process at a time, by flock. All methods may be called from any
// goroutine. Run is called once.
//
// Tests cut the files at every byte, scribble over them, fill a real file system, and kill a
// real process (in internal/faults).
package statestore
