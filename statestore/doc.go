// Package statestore keeps keys and values in a folder, so that they survive a kill of the
// program at any moment.
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
//   - Changes that Save or Record has written survive SIGKILL: write(2) appends them, and the
//     page cache outlives the process. The changes of one call are atomic.
//   - A loss of power is different. Run calls fdatasync within [Pause] after a change, so a
//     loss of power may take the changes of about the last second, also during a merge. It
//     never takes older changes and leaves newer ones: a journal is synced before the next
//     one begins. [Store.Sync] returns when the disk has all changes, for a caller that
//     depends on it.
//   - A Store is either complete or marked as stale. If the disk refuses a write (it is full,
//     for example) the Store is marked before Save returns, the changes are kept in memory,
//     and Run tries again. [Store.Stale] tells the next start. The mark ends with Renew, or
//     when everything that was missing has been written. A disk that has turned read-only refuses the mark too:
//     then a file in the folder Options.Aside is the mark, until the host starts again.
//   - A disk that neither takes nor refuses a write, such as one that is frozen, keeps callers of Save waiting. The log and
//     [Store.Failure] say so after 3 s.
//   - If somebody removes, moves or replaces the files of a running Store, the next change, or
//     Verify, writes its content anew before it returns: the files are held open. [Watch] says when to call Verify.
//   - A damaged or shortened file makes the Store stale, too. It is renamed to NAME.broken,
//     its readable part is used, and the log names the consequences.
//
// # Files
//
//	snapshot     the complete content when it was written; replaced atomically, with fsync
//	journal.N    the changes since; a snapshot of generation N needs journal.N and later ones
//	complete     an empty file: the other files are complete
//
// A stale Store has no file complete. A full disk still permits the removal of a file, and
// an emptied folder is not mistaken for a complete one. Each journal has up to 1 MiB of
// disk reserved ahead, so a full disk is noticed late.
//
// Both kinds of files begin with a header of 32 bytes: a magic text, the generation, and a
// length below which a kill never cut the file. Records follow: length, CRC-32C, changes.
// A record that a kill has cut short is the last one of the last journal. It is dropped,
// because no caller was told that it is saved. When the journals outgrow the snapshot and no more
// changes come, Run merges them in the background by reading the files again. So the Store has no second copy of
// the values in memory.
//
// # Ownership
//
// A folder belongs to one process at a time, by flock. It must belong to the user of the process, nobody else may write in
// it, and links in it are refused. All methods may be called from any
// goroutine. Run is called once.
//
// Tests cut the files at every byte, overwrite parts of them, fill a real file system, and
// kill a real process (in internal/faults).
package statestore
