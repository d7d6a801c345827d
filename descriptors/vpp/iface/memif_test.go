package iface

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/memif"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestSocketsOfMemifs spells the files of sockets in the ways that VPP takes for the same: each memif
// is on its socket and in sync. A socket with the same name in another folder is another one.
func TestSocketsOfMemifs(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) { socketsOfMemifs(t, release) })
	}
}

func socketsOfMemifs(t *testing.T, release string) {
	h, vpp := onVPP(t, release)
	testkit.Need(t, "a VPP with the plugin memif", h.API.Has(&memif.MemifDump{}))
	c := vpp.Dial()
	files := func() map[uint32]string {
		all, err := conn.Dump[memif.MemifSocketFilenameDetails](t.Context(), c, &memif.MemifSocketFilenameDump{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[uint32]string{}
		for _, d := range all {
			out[d.SocketID] = d.SocketFilename
		}
		return out
	}
	elsewhere := filepath.Join(t.TempDir(), "m.sock")
	vpp.Ask(c, &memif.MemifSocketFilenameAddDel{IsAdd: true, SocketID: 1, SocketFilename: elsewhere}, &memif.MemifSocketFilenameAddDelReply{})
	folder := filepath.Dir(files()[0])
	for i, one := range []struct{ declared, file string }{
		{"", folder + "/memif.sock"}, {"default", folder + "/memif.sock"}, {"memif.sock", folder + "/memif.sock"}, {folder + "/memif.sock", folder + "/memif.sock"},
		{"m.sock", folder + "/m.sock"}, {folder + "/m.sock", folder + "/m.sock"}, {folder + "//./m.sock", folder + "/m.sock"}, {"./m.sock", folder + "/m.sock"},
		{elsewhere, elsewhere}, {"abstract:m.sock", "abstract:m.sock"},
	} {
		v := &interfaces.Interface{Name: "memif1", Type: interfaces.Interface_MEMIF, Link: &interfaces.Interface_Memif{
			Memif: &interfaces.MemifLink{Id: uint32(i), SocketFilename: one.declared},
		}}
		meta, err := h.create(t.Context(), "", v)
		if err != nil {
			t.Fatal(err)
		}
		all, err := conn.Dump[memif.MemifDetails](t.Context(), c, &memif.MemifDump{})
		if err != nil || len(all) != 1 || files()[all[0].SocketID] != one.file {
			t.Errorf("%q: there are %+v on %v, %v; want one on %s", one.declared, all, files(), err, one.file)
		}
		for f, err := range conformance.Taken(h.retrieve(t.Context(), []scheduler.Desired[*interfaces.Interface]{{Value: v}})) {
			if err != nil || f.Value.GetName() == "memif1" && !h.equivalent("", f.Value, v) {
				t.Errorf("%q: it has %v, %v", one.declared, f.Value, err)
			}
		}
		if err := h.delete(t.Context(), "", v, meta); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{elsewhere, folder + "/m.sock", "abstract:m.sock", folder + "/memif.sock"}
	if got := slices.Sorted(maps.Values(files())); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("the sockets are %q, want %q", got, want)
	}
}
