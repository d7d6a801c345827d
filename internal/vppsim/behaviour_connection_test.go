package vppsim_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A wire is a connection without any help.
type wire struct {
	v      *vpp
	sock   net.Conn
	in     *bufio.Reader
	client uint32
	ids    map[string]uint16
}

func connect(v *vpp) *wire {
	v.Helper()
	sock, err := net.Dial("unix", v.socket)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { sock.Close() })
	if err := sock.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		v.Fatal(err)
	}
	return &wire{v: v, sock: sock, in: bufio.NewReader(sock), ids: map[string]uint16{}}
}

func (w *wire) write(bytes []byte) {
	w.v.Helper()
	if _, err := w.sock.Write(bytes); err != nil {
		w.v.Fatal(err)
	}
}

func (w *wire) read() []byte {
	w.v.Helper()
	message, err := vppwire.Read(w.in, nil)
	if err != nil {
		w.v.Fatal(err)
	}
	return message
}

// hello introduces the client, and returns what it gets.
func (w *wire) hello(context uint32) memclnt.SockclntCreateReply {
	w.v.Helper()
	w.write(w.frame(vppwire.CreateID, &memclnt.SockclntCreate{Name: "wire"}, context))
	message := w.read()
	var r memclnt.SockclntCreateReply
	if err := vppwire.Decode(message, &r); err != nil || vppwire.ID(message) != vppwire.CreateReplyID || vppwire.Context(message, &r) != context {
		w.v.Fatalf("message %d, %v", vppwire.ID(message), err)
	}
	w.client = r.Index
	for _, e := range r.MessageTable {
		name, _, _ := strings.Cut(e.Name, "\x00")
		w.ids[name] = e.Index
	}
	return r
}

func (w *wire) frame(id uint16, m api.Message, context uint32) []byte {
	w.v.Helper()
	out, err := vppwire.Append(nil, id, m, w.client, context)
	if err != nil {
		w.v.Fatal(err)
	}
	return out
}

func (w *wire) ping(context uint32) []byte {
	w.v.Helper()
	m := &memclnt.ControlPing{}
	return w.frame(w.ids[vppwire.Name(m)], m, context)
}

// pong checks that the next message answers the ping with that context, and that nothing
// else does before.
func (w *wire) pong(context uint32) {
	w.v.Helper()
	message := w.read()
	m := &memclnt.ControlPingReply{}
	if vppwire.ID(message) != w.ids[vppwire.Name(m)] || vppwire.Context(message, m) != context {
		w.v.Errorf("message %d with context %d, want the answer to ping %d", vppwire.ID(message), vppwire.Context(message, m), context)
	}
}

func connectionRows() []row {
	return []row{
		{"the table of messages", func(v *vpp) {
			for _, e := range connect(v).hello(7).MessageTable {
				if name, _, _ := strings.Cut(e.Name, "\x00"); !regexp.MustCompile(`^[a-z0-9_]+_[0-9a-f]{8}$`).MatchString(name) || e.Index == 0 {
					v.Errorf("%d %q", e.Index, name)
				}
			}
		}},
		{"its plugins, by its command line", func(v *vpp) {
			var r vlib.CliInbandReply
			v.call("show plugins", 0, &vlib.CliInband{Cmd: "show plugins"}, &r)
			lines := strings.Split(r.Reply, "\n")
			head := fmt.Sprintf("     %-41s%-33s%s", "Plugin", "Version", "Description")
			one := regexp.MustCompile(`^ {0,2}[0-9]+\. (memif_plugin\.so {25}) [0-9.a-z~-]+ +Packet Memory Interface \(memif\)`)
			if len(lines) < 4 || !strings.HasPrefix(lines[0], " Plugin path is: ") || lines[1] != "" || lines[2] != head || !slices.ContainsFunc(lines, one.MatchString) {
				v.Errorf("it says\n%s", r.Reply)
			}
		}},
		{"what is no request gets no answer, and harms nothing", func(v *vpp) {
			w := connect(v)
			w.write(w.frame(1000, &memclnt.ControlPing{}, 1)) // before the introduction
			w.hello(1)
			reply := &memclnt.ControlPingReply{}
			for _, id := range []uint16{60000, 0, w.ids[vppwire.Name(reply)]} {
				w.write(w.frame(id, &memclnt.ControlPing{}, 2))
			}
			stranger := w.ping(3)
			binary.BigEndian.PutUint32(stranger[16+2:], w.client+1000)
			w.write(stranger)
			w.write(make([]byte, 16)) // no message at all
			q := &vppif.SwInterfaceSetFlags{}
			cut := w.frame(w.ids[vppwire.Name(q)], q, 4)
			cut = cut[:len(cut)-4]
			binary.BigEndian.PutUint32(cut[8:], uint32(len(cut)-16))
			w.write(cut)
			w.write(w.ping(5))
			w.pong(5)
		}},
		{"what is too long is taken, and so is what comes in pieces", func(v *vpp) {
			w := connect(v)
			w.hello(1)
			long := append(w.ping(2), make([]byte, 100)...)
			binary.BigEndian.PutUint32(long[8:], uint32(len(long)-16))
			w.write(long)
			w.pong(2)
			pieces := w.ping(3)
			w.write(pieces[:9])
			w.write(pieces[9:20])
			w.write(pieces[20:])
			w.pong(3)
		}},
		{"who introduces himself twice keeps his number", func(v *vpp) {
			w := connect(v)
			first := w.hello(1)
			if second := w.hello(2); second.Index != first.Index {
				v.Errorf("%x, then %x", first.Index, second.Index)
			}
		}},
		{"answers come in the order of the requests", func(v *vpp) {
			w := connect(v)
			w.hello(1)
			q := &vppif.SwInterfaceDump{SwIfIndex: none}
			var all []byte
			for context := uint32(2); context < 300; context += 2 {
				all = append(append(all, w.frame(w.ids[vppwire.Name(q)], q, context)...), w.ping(context+1)...)
			}
			go func() { _, _ = w.sock.Write(all) }() // the answers tell
			d := &vppif.SwInterfaceDetails{}
			for context := uint32(2); context < 300; context += 2 {
				m := w.read()
				for vppwire.ID(m) == w.ids[vppwire.Name(d)] && vppwire.Context(m, d) == context {
					m = w.read()
				}
				if reply := (&memclnt.ControlPingReply{}); vppwire.ID(m) != w.ids[vppwire.Name(reply)] || vppwire.Context(m, reply) != context+1 {
					v.Fatalf("message %d with context %d, behind the details of %d", vppwire.ID(m), vppwire.Context(m, reply), context)
				}
			}
		}},
		{"who says good-bye is answered, and then it is over", func(v *vpp) {
			w := connect(v)
			w.hello(1)
			q, r := &memclnt.SockclntDelete{Index: w.client}, &memclnt.SockclntDeleteReply{}
			w.write(w.frame(w.ids[vppwire.Name(q)], q, 2))
			if m := w.read(); vppwire.ID(m) != w.ids[vppwire.Name(r)] {
				v.Errorf("message %d", vppwire.ID(m))
			}
			if _, err := vppwire.Read(w.in, nil); err == nil {
				v.Error("it goes on")
			}
		}},
		{"events are wanted once, and come behind the answer", events},
		{"events do not tell of a link that is up already, nor of that of a parent", eventsOfLinks},
	}
}

// ask sends a request, and reads its answer, which is to be the next message.
func (w *wire) ask(q, r api.Message) {
	w.v.Helper()
	w.write(w.frame(w.ids[vppwire.Name(q)], q, 2))
	m := w.read()
	if vppwire.ID(m) != w.ids[vppwire.Name(r)] {
		w.v.Fatalf("message %d answers %s", vppwire.ID(m), q.GetMessageName())
	}
	if err := vppwire.Decode(m, r); err != nil {
		w.v.Fatal(err)
	}
}

// event reads one, which is to be the next message.
func (w *wire) event() (e vppif.SwInterfaceEvent) {
	w.v.Helper()
	m := w.read()
	if err := vppwire.Decode(m, &e); err != nil || vppwire.ID(m) != w.ids[vppwire.Name(&e)] || vppwire.Client(m) != w.client {
		w.v.Fatalf("message %d for client %x, %v", vppwire.ID(m), vppwire.Client(m), err)
	}
	return e
}

func events(v *vpp) {
	w := connect(v)
	w.hello(1)
	var wants vppif.WantInterfaceEventsReply
	for step, want := range []struct {
		enable uint32
		retval api.VPPApiError
	}{{1, 0}, {1, api.INVALID_REGISTRATION}, {0, 0}, {0, api.INVALID_REGISTRATION}, {1, 0}} {
		w.ask(&vppif.WantInterfaceEvents{EnableDisable: want.enable, PID: 42}, &wants)
		if api.VPPApiError(wants.Retval) != want.retval {
			v.Errorf("step %d: %d", step, wants.Retval)
		}
	}
	var loop vppif.CreateLoopbackReply
	w.ask(&vppif.CreateLoopback{}, &loop)
	v.Cleanup(func() { _ = v.delete(loop.SwIfIndex) }) // it is deleted already, if all went well
	expect := func(flags uint32, deleted bool) {
		v.Helper()
		if e := w.event(); e.SwIfIndex != loop.SwIfIndex || e.Flags != adminLink(flags) || e.Deleted != deleted || e.PID != 42 {
			v.Errorf("%+v, want flags %d, deleted %t", e, flags, deleted)
		}
	}
	expect(0, false)
	w.ask(&vppif.SwInterfaceSetFlags{SwIfIndex: loop.SwIfIndex, Flags: 1}, &vppif.SwInterfaceSetFlagsReply{})
	expect(3, false)
	w.ask(&vppif.SwInterfaceSetFlags{SwIfIndex: loop.SwIfIndex, Flags: 1}, &vppif.SwInterfaceSetFlagsReply{}) // it is up already
	w.write(w.ping(6))
	w.pong(6)
	w.ask(&vppif.DeleteLoopback{SwIfIndex: loop.SwIfIndex}, &vppif.DeleteLoopbackReply{})
	expect(0, true)
}

// eventsOfMembers gives a bond a member, whose link is that of the bond and of its sub-interface.
func (v *vpp) eventsOfMembers(w *wire, b index, expect func(i index, told, shown uint32), set func(i index, flags uint32)) {
	v.Helper()
	expect(b, 0, 0)
	set(b, 1)
	expect(b, 1, 1)
	var sub vppif.CreateVlanSubifReply
	w.ask(&vppif.CreateVlanSubif{SwIfIndex: b, VlanID: 7}, &sub)
	expect(sub.SwIfIndex, 0, 0)
	set(sub.SwIfIndex, 1)
	expect(sub.SwIfIndex, 1, 1)
	var member vppif.CreateLoopbackReply
	w.ask(&vppif.CreateLoopback{}, &member)
	v.Cleanup(func() { _ = v.delete(member.SwIfIndex) }) // the row may have deleted it
	expect(member.SwIfIndex, 0, 0)
	set(member.SwIfIndex, 1)
	expect(member.SwIfIndex, 3, 3)
	w.ask(&bond.BondAddMember{SwIfIndex: member.SwIfIndex, BondSwIfIndex: b}, &bond.BondAddMemberReply{})
	expect(b, 2, 3) // the event tells of the link alone
	if d := v.details(sub.SwIfIndex); d.Flags != adminLink(3) {
		v.Errorf("the sub-interface shows flags %d", d.Flags)
	}
	w.ask(&bond.BondDetachMember{SwIfIndex: member.SwIfIndex}, &bond.BondDetachMemberReply{})
	expect(b, 0, 1)
}

// eventsOfLinks has a bond, whose link is up from the beginning before 26.06, and a sub-interface of it.
func eventsOfLinks(v *vpp) {
	w := connect(v)
	w.hello(1)
	w.ask(&vppif.WantInterfaceEvents{EnableDisable: 1}, &vppif.WantInterfaceEventsReply{})
	var b bond.BondCreate2Reply
	w.ask(&bond.BondCreate2{ID: none32, Mode: bond.BOND_API_MODE_XOR}, &b)
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &bond.BondDelete{SwIfIndex: b.SwIfIndex}, &bond.BondDeleteReply{}) // its sub-interface goes too
	})
	expect := func(i index, told, shown uint32) {
		v.Helper()
		if e := w.event(); e.SwIfIndex != i || e.Flags != adminLink(told) || e.Deleted {
			v.Errorf("%+v, want flags %d of %d", e, told, i)
		}
		if d := v.details(i); d.Flags != adminLink(shown) {
			v.Errorf("interface %d shows flags %d, want %d", i, d.Flags, shown)
		}
	}
	set := func(i index, flags uint32) {
		v.Helper()
		w.ask(&vppif.SwInterfaceSetFlags{SwIfIndex: i, Flags: adminLink(flags)}, &vppif.SwInterfaceSetFlagsReply{})
	}
	if v.since("26.06") {
		v.eventsOfMembers(w, b.SwIfIndex, expect, set)
		return
	}
	expect(b.SwIfIndex, 2, 2)
	set(b.SwIfIndex, 1)
	expect(b.SwIfIndex, 1, 3)
	var sub vppif.CreateVlanSubifReply
	w.ask(&vppif.CreateVlanSubif{SwIfIndex: b.SwIfIndex, VlanID: 7}, &sub)
	expect(sub.SwIfIndex, 0, 2)
	set(sub.SwIfIndex, 1)
	expect(sub.SwIfIndex, 1, 3)
	set(b.SwIfIndex, 0)
	expect(b.SwIfIndex, 0, 0)
	if d := v.details(sub.SwIfIndex); d.Flags != adminLink(1) {
		v.Errorf("without its parent it shows flags %d", d.Flags)
	}
	set(b.SwIfIndex, 1)
	expect(b.SwIfIndex, 3, 3)
	set(sub.SwIfIndex, 0)
	expect(sub.SwIfIndex, 0, 2)
}
