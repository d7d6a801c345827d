// Package wake has the signal by which one goroutine tells another that there is work.
//
// The work itself is kept elsewhere, under a lock of its owner. The writer adds
// work and then calls Set. The reader waits on C and then takes all work. A signal
// that is set twice before the reader wakes counts once, so Set never blocks and no
// work is missed. A reader may wake and find nothing: an earlier turn took it.
package wake

// A Signal is set or not set. Use New; the zero Signal never wakes anyone.
type Signal struct{ c chan struct{} }

// New returns a signal that is not set.
func New() Signal { return Signal{make(chan struct{}, 1)} }

// Set wakes the reader, now or when it waits next. It never blocks.
func (s Signal) Set() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// C is the channel on which the reader waits. Receiving from it clears the signal.
func (s Signal) C() <-chan struct{} { return s.c }

// A Group sets several signals at once. Its readers join before the writer begins. The zero Group is ready
// to use.
type Group struct{ all []Signal }

// Join returns a new signal of the group.
func (g *Group) Join() Signal {
	s := New()
	g.all = append(g.all, s)
	return s
}

// Set sets all signals of the group.
func (g *Group) Set() {
	for _, s := range g.all {
		s.Set()
	}
}

// If returns a channel that is ready if now is true, and never otherwise. A select with it is fair to its
// other cases.
func If(now bool) <-chan struct{} {
	if !now {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}
