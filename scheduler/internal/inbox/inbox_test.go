package inbox_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/inbox"
)

func TestRequestsAreMerged(t *testing.T) {
	in := inbox.New[string]()
	in.Refresh("a")
	in.Refresh("b", "a")
	<-in.Ready()
	got := in.Take()
	if names := got.Refresh.Names(); !got.Refresh.Asked || !maps.Equal(names, map[string]bool{"a": true, "b": true}) {
		t.Errorf("to be read back: %v", names)
	}
	in.Refresh("a")
	in.Refresh()
	got = in.Take()
	if names := got.Refresh.Names(); !got.Refresh.Asked || names != nil {
		t.Errorf("to be read back: %v, want all", names)
	}
	if again := in.Take(); again.Refresh.Asked || again.Connections != nil {
		t.Errorf("requests come twice: %+v", again)
	}
}

func TestChangesOfAConnectionKeepTheirOrder(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	lost, ready := inbox.Change{Lost: first}, inbox.Change{Ready: true}
	for name, c := range map[string]struct{ changes, want []inbox.Change }{
		"lost":              {[]inbox.Change{lost}, []inbox.Change{lost}},
		"lost, then ready":  {[]inbox.Change{lost, ready}, []inbox.Change{{Lost: first, Ready: true}}},
		"ready, then lost":  {[]inbox.Change{ready, lost}, []inbox.Change{lost}},
		"the newest reason": {[]inbox.Change{lost, {Lost: second}}, []inbox.Change{{Lost: second}}},
	} {
		in := inbox.New[string]()
		for _, change := range c.changes {
			in.Connection("vpp", change)
		}
		if got := in.Take().Connections["vpp"]; got != c.want[0] {
			t.Errorf("%s: %+v, want %+v", name, got, c.want[0])
		}
	}
}

func TestLossesAreTakenAlone(t *testing.T) {
	in := inbox.New[string]()
	reason := errors.New("closed")
	in.Connection("a", inbox.Change{Lost: reason})
	in.Connection("b", inbox.Change{Lost: reason})
	in.Connection("b", inbox.Change{Ready: true})
	in.Connection("c", inbox.Change{Ready: true})
	if got := in.TakeLosses(); len(got) != 2 || got["a"] == nil || got["b"] == nil {
		t.Errorf("losses: %v", got)
	}
	if got := in.TakeLosses(); got != nil {
		t.Errorf("losses come twice: %v", got)
	}
	ready := inbox.Change{Ready: true}
	if got := in.Take().Connections; !maps.Equal(got, map[string]inbox.Change{"b": ready, "c": ready}) {
		t.Errorf("left: %v", got)
	}
}
