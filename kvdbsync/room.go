package kvdbsync

import (
	"fmt"
	"slices"
	"sync"
)

// A Room is a number of places for keys that several sources share. Half of them are divided among the sources, so that none can
// take the places of all; the other half is for whoever comes first. Any goroutine may call the methods.
type Room struct {
	most int

	mu   sync.Mutex // guards the fields below, and those of places
	used []*places  // by source
}

// places are those that a source has taken. nil has no bound.
type places struct {
	room  *Room
	taken int
}

// NewRoom returns a Room of so many places.
func NewRoom(most int) *Room { return &Room{most: most} }

// Most returns the number of places.
func (r *Room) Most() int { return r.most }

// share returns the places of another source, none yet.
func (r *Room) share() *places {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &places{room: r}
	r.used = append(r.used, p)
	return p
}

// free returns the number of places that a source may take. The caller holds mu.
func (p *places) free() int {
	own := p.room.most / 2 / len(p.room.used)
	common := p.room.most - own*len(p.room.used)
	for _, other := range p.room.used {
		common -= max(0, other.taken-own)
	}
	return max(0, own-p.taken) + max(0, common)
}

// take takes a place, and reports whether there was one.
func (p *places) take() bool {
	if p == nil {
		return true
	}
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	free := p.free() > 0
	if free {
		p.taken++
	}
	return free
}

// give gives places back. A negative number takes more than there may be.
func (p *places) give(n int) {
	if p != nil && n != 0 {
		p.room.mu.Lock()
		defer p.room.mu.Unlock()
		p.taken -= n
	}
}

// plenty reports whether a source may take a tenth of all places.
func (p *places) plenty() bool {
	if p == nil {
		return false
	}
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	return p.free() >= (p.room.most+9)/10
}

// full is the reason why a key is ignored.
func (p *places) full(key string) error {
	return fmt.Errorf("%w: there is no room for %.200q: max-keys (orchestrator.conf) allows the stores %d keys together, and each its share", ErrTooMuch, key, p.room.most)
}

// admit leaves out the events of new keys for which there is no room, which are then ignored, and calls refused with each.
// It returns how many places the others have taken. The caller holds mu.
func (s *Source) admit(events []Event, ignored *ignored, refused func(Event)) (admitted []Event, taken int) {
	if s.places == nil {
		return events, 0
	}
	admitted = slices.DeleteFunc(events, func(e Event) bool {
		added := (e.Value != nil || e.Err != nil) && s.mirror.stateOf(e.Key).gone()
		if added && !s.places.take() {
			ignored.note(e, s.places.full(e.Key))
			refused(e)
			return true
		}
		if added {
			taken++
		}
		if ignored.any() {
			ignored.drop(digestOf([]byte(e.Key)))
		}
		return false
	})
	return admitted, taken
}
