package leftovers

import (
	"encoding/binary"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// In a container, each run of VPP has the process ID 1. A creation that a kill of the agent has interrupted is looked for
// in the same run, and in no other one.
func TestCreationsOfARun(t *testing.T) {
	notes := testkit.Memory{}
	start := func(run string) *Unconfirmed {
		u := &Unconfirmed{}
		u.KeepIn(notes, slog.New(slog.NewTextHandler(testkit.Log(t), nil)))
		if !u.Connected(1, run) {
			t.Errorf("the first connection, to the run %s, is not a new run", run)
		}
		return u
	}
	u := start("first")
	u.Begin(&interfaces.Interface{Name: "a"}) // the agent is killed
	u = start("first")
	if names := slices.Collect(maps.Keys(u.All())); !slices.Equal(names, []string{"a"}) {
		t.Errorf("in the same run, %q are looked for", names)
	}
	if u.Connected(1, "first") {
		t.Error("a second connection to the same run is a new run")
	}
	if !u.Connected(1, "second") || len(u.All()) > 0 {
		t.Errorf("in another run with the same process ID, %v are looked for", u.All())
	}
	if len(notes) > 0 {
		t.Errorf("the memory has %q of an earlier run", notes)
	}
}

// A record of earlier versions has only the process ID of VPP.
func TestCreationsOfOlderAgents(t *testing.T) {
	value, err := proto.Marshal(&interfaces.Interface{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[uint32]int{4711: 1, 4712: 0} {
		u := &Unconfirmed{}
		u.KeepIn(testkit.Memory{creationKeys + "a": append(binary.BigEndian.AppendUint32(nil, 4711), value...)}, slog.Default())
		u.Connected(pid, "first")
		if all := u.All(); len(all) != want {
			t.Errorf("process %d: %v are looked for; expected %d", pid, all, want)
		}
	}
}
