package statestore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/statestore"
)

// What is merged into a snapshot says the same, needs less room, and is as good after a
// kill at any moment: files of the steps of a merge are combined in all ways that can be.
func TestMerging(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{CompactAt: 100})
	for i := range 100 {
		save(t, s, fmt.Sprintf("a=%d b%d=x b%d=", i, i, i-1))
	}
	before := killed(t, dir)
	save(t, s, "c=3")
	must(t, statestore.Compact(s))
	want := "a=99 b99=x c=3"
	expect(t, s, want)
	save(t, s, "d=4")
	expect(t, open(t, killed(t, dir), statestore.Options{}), want+" d=4")

	// Killed after the snapshot was written, and before the old journal was removed.
	between := killed(t, dir)
	must(t, os.Link(filepath.Join(before, "journal.1"), filepath.Join(between, "journal.1")))
	must(t, os.WriteFile(filepath.Join(between, ".snapshot123"), []byte("half"), 0o600))
	again := open(t, between, statestore.Options{})
	expect(t, again, want+" d=4")
	if exists(filepath.Join(between, "journal.1")) || exists(filepath.Join(between, ".snapshot123")) {
		t.Error("leftovers are not removed")
	}

	// Killed after the new journal was begun, and before there was a snapshot.
	must(t, os.Rename(filepath.Join(dir, "journal.2"), filepath.Join(before, "journal.2")))
	expect(t, open(t, before, statestore.Options{}), "a=99 b99=x d=4")
	must(t, s.Close())
}

// syncedLength reads the length that a journal notes in its header after each sync.
func syncedLength(t *testing.T, path string) (noted, size int) {
	t.Helper()
	content := readAll(t, path)
	return int(binary.LittleEndian.Uint64(content[24:])), len(content)
}

// A merge of a large store takes long. Changes are synced meanwhile, and the merge finds all
// that was saved before it on disk.
func TestChangesAreSyncedDuringAMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		s := open(t, dir, statestore.Options{CompactAt: 100})
		begun, proceed := make(chan bool, 9), make(chan bool)
		statestore.BeforeMerging(s, func() { begun <- true; <-proceed })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		save(t, s, "a=1 b="+strings.Repeat("x", 100))
		<-begun
		for i := range 3 {
			save(t, s, fmt.Sprintf("c%d=%s", i, strings.Repeat("y", 100)))
			<-time.After(1500 * time.Millisecond)
			if noted, size := syncedLength(t, filepath.Join(dir, "journal.2")); noted != size {
				t.Errorf("after change %d only %d of %d bytes are synced", i, noted, size)
			}
		}
		if noted, size := syncedLength(t, filepath.Join(dir, "journal.1")); noted != size {
			t.Errorf("%d of %d bytes of the closed journal are synced", noted, size)
		}
		if len(begun) > 0 {
			t.Error("two merges run at once")
		}
		cancel()
		synctest.Wait()
		if len(ended) > 0 {
			t.Error("Run has ended before the merge")
		}
		close(proceed)
		must(t, <-ended)
		if exists(filepath.Join(dir, "journal.1")) || !exists(filepath.Join(dir, "snapshot")) {
			t.Error("the journal is not merged")
		}
		must(t, s.Close())
	})
}

// A merge waits until no changes arrive, but not for ever.
func TestMergesWaitForTheEndOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		s := open(t, dir, statestore.Options{CompactAt: 100})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		merged := func() bool { return exists(filepath.Join(dir, "snapshot")) }
		change := func(bytes int) {
			save(t, s, "a="+strings.Repeat("x", bytes))
			<-time.After(statestore.Pause / 2)
			synctest.Wait()
		}
		for range 10 {
			change(100)
		}
		if merged() {
			t.Error("merged while changes arrived")
		}
		<-time.After(3 * statestore.Pause)
		synctest.Wait()
		if !merged() {
			t.Error("not merged after the last change")
		}
		must(t, os.Remove(filepath.Join(dir, "snapshot")))
		for range 35 {
			change(4 << 20)
		}
		if !merged() {
			t.Error("140 MiB are not merged while changes arrive")
		}
		cancel()
		must(t, <-ended)
		must(t, s.Close())
	})
}

// Changes that were saved while a merge begins are on disk before the new journal takes others.
// Otherwise a loss of power could take older changes and leave newer ones.
func TestAClosedJournalIsSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{CompactAt: 1})
	save(t, s, "a=1")
	statestore.BeforeMerging(s, func() {
		if noted, size := syncedLength(t, filepath.Join(dir, "journal.1")); noted != size {
			t.Errorf("%d of %d bytes are synced", noted, size)
		}
	})
	must(t, statestore.Compact(s))
	must(t, s.Close())
}

// A file that is damaged while the agent runs is not merged: what is behind the damage would go without a trace.
func TestMergeOverDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, statestore.Options{CompactAt: 1})
	for i := range 20 {
		save(t, s, fmt.Sprintf("c%d=%d", i, i))
	}
	must(t, s.Sync())
	f, err := os.OpenFile(filepath.Join(dir, "journal.1"), os.O_RDWR, 0)
	must(t, err)
	one := make([]byte, 1)
	_, err = f.ReadAt(one, 100)
	must(t, err)
	_, err = f.WriteAt([]byte{one[0] ^ 0x10}, 100)
	must(t, errors.Join(err, f.Close()))
	if err := statestore.Compact(s); err == nil || !strings.Contains(err.Error(), "journal.1: a record is damaged") {
		t.Errorf("the merge ended with %v", err)
	}
	must(t, s.Close())
	after := open(t, dir, statestore.Options{})
	defer after.Close()
	if err := after.Stale(); err == nil {
		t.Error("the next start takes what is left for complete")
	}
}
