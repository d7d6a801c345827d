package pulse_test

import (
	"testing"

	"github.com/keyplane/keyplane/internal/pulse"
)

func TestALoopThatWorksFromOneLookToTheNextIsStuck(t *testing.T) {
	var p pulse.Pulse
	w := p.Watch()
	look := func(when string, want bool) {
		t.Helper()
		if got := w.Alive(); got != want {
			t.Errorf("%s: alive is %v", when, got)
		}
	}
	look("before the first work", true)
	look("while it waits", true)
	p.Work()
	look("work that has begun since the last look", true)
	look("the same work", false)
	p.Work() // within a piece of work
	look("still the same work", false)
	p.Rest()
	p.Work()
	look("other work", true)
	p.Rest()
	p.Rest()
	look("at rest", true)
	look("at rest for long", true)
}
