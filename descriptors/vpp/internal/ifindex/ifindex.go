// Package ifindex records which name has which sw_if_index in VPP, and in which state.
//
//	table.Claim("loop1", 5)          // VPP created interface 5 for loop1
//	table.Tagged("loop1", 5, true)   // VPP has its name
//	index, known := table.Index("loop1")
//
// A name has at most one index. An index has at most one holder: the interface that
// VPP has under that index now. VPP gives the index of a deleted interface to the next
// one, so a name can be left with an index that another interface holds.
//
//	state     meaning                                             set by
//	Untagged  VPP has the interface without our tag               Claim, Reported
//	New       created and tagged; no other request was sent       Tagged
//	Live      VPP had the tag when it was last read or written    Tagged, Used, Kept, Replace
//	Deleting  the agent asks VPP to delete the interface          Deleting
//	Deleted   VPP confirmed; its events may still arrive          Deleted
//	Gone      VPP no longer lists it, and we did not delete it    Replace
//
// Replace brings the table in line with a dump of all interfaces; it ends New and
// Deleted. Restarted empties the table. A Table is safe for concurrent use.
package ifindex

import "sync"

// A Life is the state of an interface.
type Life int

// The states; the package comment explains them.
const (
	Untagged Life = iota
	New
	Live
	Deleting
	Deleted
	Gone
)

// String is the word that tests and errors use.
func (l Life) String() string {
	return [...]string{"untagged", "new", "live", "deleting", "deleted", "gone"}[l]
}

// An Entry is one interface. An untagged one has the name that it was created for, or none.
type Entry struct {
	Name  string
	Index uint32
	Life  Life
}

// A Table records interfaces. The zero value is empty.
type Table struct {
	mu       sync.Mutex // guards all fields
	byName   map[string]*Entry
	byIndex  map[uint32]*Entry // the holders
	reported map[uint32]bool   // the indexes that VPP told us about, in a dump or an event
	read     bool              // Replace was called since VPP started
	inUse    bool              // interfaces had tags at the first Replace
}

// Claim records that VPP created an interface for a name. It has no tag yet.
func (t *Table) Claim(name string, index uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hold(&Entry{name, index, Untagged})
}

// Tagged records that an interface has its tag; fresh: nothing but the tag was set on it.
func (t *Table) Tagged(name string, index uint32, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	life := Live
	if fresh {
		life = New
	}
	t.put(&Entry{name, index, life})
}

// Used tells whether an interface is New, and makes it Live.
func (t *Table) Used(name string) (wasNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byName[name]
	if e == nil || e.Life != New {
		return false
	}
	e.Life = Live
	return true
}

// Deleting records that the agent is about to delete an interface. VPP can report the
// deletion before it answers.
func (t *Table) Deleting(name string, index uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byName[name]; e != nil && e.Index == index {
		e.Life = Deleting
		return
	}
	t.name(&Entry{name, index, Deleting})
}

// Kept records that VPP refused to delete an interface.
func (t *Table) Kept(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byName[name]; e != nil && e.Life == Deleting {
		e.Life = Live
	}
}

// Deleted records that VPP deleted an interface on our request.
func (t *Table) Deleted(name string, index uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name(&Entry{name, index, Deleted})
	t.release(name, index)
	delete(t.reported, index)
}

// LostByUs tells whether the agent has deleted, or is deleting, the interface that had this name
// and index, so that the index may have another interface by now, and the name another index.
func (t *Table) LostByUs(name string, index uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byName[name]
	return e != nil && (e.Index != index || e.Life == Deleting || e.Life == Deleted)
}

// Has tells whether an interface of ours has this name and index, and is not being deleted.
func (t *Table) Has(name string, index uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byName[name]
	return e != nil && e.Index == index && (e.Life == New || e.Life == Live)
}

// Reported records an event of VPP: the index has an interface, or none. The holder of a
// free index stays: the event can be about the interface that had the index before.
func (t *Table) Reported(index uint32, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := t.byIndex[index]; {
	case exists && e == nil:
		t.hold(&Entry{"", index, Untagged})
	case !exists && e != nil && e.Name == "":
		delete(t.byIndex, index)
	}
	t.report(index, exists)
}

// ReportedIndexes returns the indexes that have an interface according to VPP's dumps and
// events. A created interface is missing until VPP reports it.
func (t *Table) ReportedIndexes() map[uint32]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[uint32]bool, len(t.reported))
	for index := range t.reported {
		out[index] = true
	}
	return out
}

// Replace brings the table in line with a dump of all interfaces. The life of the entries
// is not used: one with a name is Live, one without is Untagged.
func (t *Table) Replace(dump []Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, e := range t.byName {
		if e.Life == Deleted {
			delete(t.byName, name)
		}
		e.Life = Gone
	}
	t.byIndex, t.reported = nil, nil
	tagged := false
	for _, one := range dump {
		t.report(one.Index, true)
		if one.Name == "" {
			t.hold(&Entry{"", one.Index, Untagged})
			continue
		}
		tagged = true
		t.put(&Entry{one.Name, one.Index, Live})
	}
	if !t.read {
		t.read, t.inUse = true, tagged
	}
}

// Restarted empties the table: a VPP that was restarted has none of the interfaces.
func (t *Table) Restarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byName, t.byIndex, t.reported = nil, nil, nil
	t.read, t.inUse = false, false
}

// InUse tells whether VPP had tagged interfaces when it was first read.
func (t *Table) InUse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inUse
}

// Index returns the index that an interface has or, if it is Gone, had.
func (t *Table) Index(name string) (index uint32, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.byName[name]
	if e == nil || e.Life == Deleted {
		return 0, false
	}
	return e.Index, true
}

// Indexes returns the indexes of all names, as Index does.
func (t *Table) Indexes() map[string]uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]uint32, len(t.byName))
	for name, e := range t.byName {
		if e.Life != Deleted {
			out[name] = e.Index
		}
	}
	return out
}

// Holder returns the name of the interface that has an index; empty: none, or one without
// a name of ours.
func (t *Table) Holder(index uint32) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byIndex[index]; e != nil {
		return e.Name
	}
	return ""
}

// put makes e the entry of its name and the holder of its index. It is called with mu
// held, as are those below.
func (t *Table) put(e *Entry) {
	if old := t.byName[e.Name]; old != nil && old.Index != e.Index {
		t.release(e.Name, old.Index)
	}
	t.name(e)
	t.hold(e)
}

// name makes e the entry of its name. The caller holds mu.
func (t *Table) name(e *Entry) {
	if t.byName == nil {
		t.byName = map[string]*Entry{}
	}
	t.byName[e.Name] = e
}

// hold makes e the holder of its index. The caller holds mu.
func (t *Table) hold(e *Entry) {
	if t.byIndex == nil {
		t.byIndex = map[uint32]*Entry{}
	}
	t.byIndex[e.Index] = e
}

// release removes a name as the holder of an index.
func (t *Table) release(name string, index uint32) {
	if e := t.byIndex[index]; e != nil && e.Name == name {
		delete(t.byIndex, index)
	}
}

// report notes whether VPP has reported an interface with the index. The caller holds mu.
func (t *Table) report(index uint32, exists bool) {
	if !exists {
		delete(t.reported, index)
		return
	}
	if t.reported == nil {
		t.reported = map[uint32]bool{}
	}
	t.reported[index] = true
}
