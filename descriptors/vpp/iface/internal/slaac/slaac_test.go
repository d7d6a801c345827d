package slaac

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

func TestEnds(t *testing.T) {
	addresses, both := &Setting{AddressAutoconfig: true}, &Setting{AddressAutoconfig: true, InstallDefaultRoutes: true}
	routes := &Setting{InstallDefaultRoutes: true} // takes nothing, as VPP sees it
	for _, c := range []struct {
		name     string
		was, now *Setting
		want     bool
	}{
		{"nothing was set", nil, nil, false},
		{"begins", nil, addresses, false},
		{"begins with routes", addresses, both, false},
		{"repeated", both, both, false},
		{"ends with routes", both, addresses, true},
		{"ends with addresses", addresses, nil, true},
		{"ends with both", both, nil, true},
		{"routes without addresses", both, routes, true},
		{"routes without addresses end", routes, nil, false},
		{"an earlier agent may have set both", Unknown(), addresses, true},
		{"an earlier agent may have set the same", Unknown(), both, false},
	} {
		if got := ends(c.was, c.now); got != c.want {
			t.Errorf("%s: %t; expected %t", c.name, got, c.want)
		}
	}
}

func TestOthers(t *testing.T) {
	existing := map[string]ifindex.Meta{"a": {Index: 1}, "b": {Index: 2}, "off": {Index: 3}}
	get := func(name string) (ifindex.Meta, bool) { m, ok := existing[name]; return m, ok }
	of := func(name string, index uint32) *Setting {
		return &Setting{AddressAutoconfig: name != "off" && index == existing[name].Index}
	}
	got := Others([]string{"a", "b", "off", "gone"}, of, get, 2)
	if !slices.Equal(got, []interface_types.InterfaceIndex{1}) {
		t.Errorf("others are %v; expected interface 1 alone", got)
	}
}

func TestNotes(t *testing.T) {
	for _, v := range []*Setting{{}, {AddressAutoconfig: true}, {InstallDefaultRoutes: true}, Unknown()} {
		if got := Noted(Note(7, v), 7); !proto.Equal(got, v) {
			t.Errorf("%v is noted as %v", v, got)
		}
		if got := Noted(Note(7, v), 8); got != nil {
			t.Errorf("%v of interface 7 counts for interface 8", got)
		}
	}
	for _, note := range []string{"", "7", "7 addresses=true", "x addresses=true routes=true"} {
		if got := Noted([]byte(note), 7); got != nil {
			t.Errorf("%q is %v", note, got)
		}
	}
}

// Suspicions of one moment make one solicitation; without a Pace, each has its own.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		if !p.take() || p.take() {
			t.Error("two solicitations at once; expected one")
		}
		<-time.After(time.Second)
		if !p.take() {
			t.Error("no solicitation after a second")
		}
		for range 2 {
			if none := (*Pace)(nil); !none.take() {
				t.Error("no solicitation without a Pace")
			}
		}
	})
}
