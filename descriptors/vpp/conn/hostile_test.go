package conn_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// hostileMessages are those that a hostile VPP has, in the order of their numbers from 100 on.
var hostileMessages = []api.Message{
	&vpe.ShowVersion{}, &vpe.ShowVersionReply{}, &memclnt.ControlPing{}, &memclnt.ControlPingReply{},
	&vppif.SwInterfaceDump{}, &vppif.SwInterfaceDetails{}, &vppif.SwInterfaceEvent{}, &vlib.CliInband{}, &vlib.CliInbandReply{},
}

func numberOf(name string) uint16 {
	for i, m := range hostileMessages {
		if m.GetMessageName() == name {
			return uint16(100 + i)
		}
	}
	panic(name)
}

// A hostile VPP answers requests by name: with what answers has for it, else as VPP does. Dumps are
// answered by nothing else.
type hostile map[string]func(context uint32) []byte

// serve serves clients until the test ends, and tells of each.
func (h hostile) serve(t *testing.T) (socket string, clients <-chan struct{}) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	told := make(chan struct{}, 10_000)
	go func() {
		for sock, err := listener.Accept(); err == nil; sock, err = listener.Accept() {
			told <- struct{}{}
			go h.client(t, sock)
		}
	}()
	return socket, told
}

func (h hostile) client(t *testing.T, sock net.Conn) {
	defer sock.Close()
	in := bufio.NewReader(sock)
	for message, err := vppwire.Read(in, nil); err == nil; message, err = vppwire.Read(in, nil) {
		if _, err := sock.Write(h.answer(t, message)); err != nil {
			return
		}
	}
}

func (h hostile) answer(t *testing.T, message []byte) []byte {
	id := vppwire.ID(message)
	if id == vppwire.CreateID {
		if table := h["sockclnt_create"]; table != nil {
			return table(1)
		}
		return hostileWelcome(t)
	}
	request := hostileMessages[id-100]
	context := vppwire.Context(message, request)
	if own := h[request.GetMessageName()]; own != nil {
		return own(context)
	}
	switch request.(type) {
	case *vpe.ShowVersion:
		return frame(t, numberOf("show_version_reply"), &vpe.ShowVersionReply{Version: "hostile"}, context)
	case *memclnt.ControlPing:
		return frame(t, numberOf("control_ping_reply"), &memclnt.ControlPingReply{VpePID: 7}, context)
	}
	return nil
}

func hostileWelcome(t *testing.T, more ...memclnt.MessageTableEntry) []byte {
	var table []memclnt.MessageTableEntry
	for i, m := range hostileMessages {
		table = append(table, memclnt.MessageTableEntry{Index: uint16(100 + i), Name: vppwire.Name(m)})
	}
	return frame(t, vppwire.CreateReplyID, &memclnt.SockclntCreateReply{Index: 1, MessageTable: append(table, more...)}, 1)
}

var allInterfaces = &vppif.SwInterfaceDump{SwIfIndex: ^vppif.SwInterfaceDump{}.SwIfIndex}

func details(t *testing.T, context uint32) []byte {
	return frame(t, numberOf("sw_interface_details"), &vppif.SwInterfaceDetails{SwIfIndex: 1, Tag: "one", Mtu: make([]uint32, 4)}, context)
}

func TestHostileWelcome(t *testing.T) {
	count := hostileWelcome(t)
	at := 16 + vppwire.HeaderLen(&memclnt.SockclntCreateReply{}) + 8
	count[at], count[at+1] = 0xff, 0xff
	for name, welcome := range map[string][]byte{
		"a count beyond the message": count,
		"one number for two":         hostileWelcome(t, memclnt.MessageTableEntry{Index: 100, Name: "other_12345678"}),
		"two numbers for one":        hostileWelcome(t, memclnt.MessageTableEntry{Index: 300, Name: vppwire.Name(&vpe.ShowVersion{})}),
	} {
		t.Run(name, func(t *testing.T) {
			socket, _ := hostile{"sockclnt_create": func(uint32) []byte { return welcome }}.serve(t)
			if _, err := conn.Dial(t.Context(), socket, "test"); !errors.Is(err, conn.ErrProtocol) {
				t.Errorf("it is taken for VPP: %v", err)
			}
		})
	}
}

// Other checksums are other messages.
func TestHostileChecksums(t *testing.T) {
	welcome := frame(t, vppwire.CreateReplyID, &memclnt.SockclntCreateReply{Index: 1, MessageTable: []memclnt.MessageTableEntry{
		{Index: 100, Name: "show_version_00000000"}, {Index: 101, Name: strings.Repeat("x", 64)}, {Index: 102, Name: "\xff"}, {Index: 103},
	}}, 1)
	socket, _ := hostile{"sockclnt_create": func(uint32) []byte { return welcome }}.serve(t)
	c := dial(t, socket)
	var missing *conn.Missing
	if err := c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); !errors.As(err, &missing) {
		t.Errorf("it is called all the same: %v", err)
	}
}

func TestHostileAnswers(t *testing.T) {
	beyond := func(context uint32) []byte {
		out := frame(t, numberOf("cli_inband_reply"), &vlib.CliInbandReply{Reply: "x"}, context)
		out[16+6+4] = 0xff
		return out
	}
	socket, _ := hostile{
		"cli_inband": beyond,
		"sw_interface_dump": func(c uint32) []byte {
			return append(details(t, c+1000), append(short(details(t, c), 1), details(t, c)...)...)
		},
	}.serve(t)
	c := dial(t, socket)
	err := c.Call(t.Context(), &vlib.CliInband{Cmd: "show"}, &vlib.CliInbandReply{})
	if !errors.Is(err, conn.ErrProtocol) || !errors.Is(err, vppwire.ErrCount) || !strings.Contains(err.Error(), "cli_inband_reply") {
		t.Errorf("a string beyond the message: %v", err)
	}
	if all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, allInterfaces); err == nil {
		t.Errorf("details that are too short: %v", all)
	}
	if err := c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// Details without end end the connection.
func TestEndlessDetails(t *testing.T) {
	for name, limit := range map[string][2]int{"details": {1000, 1 << 30}, "bytes": {1 << 30, 100_000}} {
		t.Run(name, func(t *testing.T) {
			socket, _ := hostile{"sw_interface_dump": func(c uint32) []byte { return bytes.Repeat(details(t, c), 5000) }}.serve(t)
			c := dial(t, socket)
			c.Limit(limit[0], limit[1])
			all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, allInterfaces)
			if !errors.Is(err, conn.ErrProtocol) || !strings.Contains(err.Error(), name+" ") || !strings.Contains(err.Error(), "sw_interface_dump") || len(all) > 1000 {
				t.Errorf("%d details, %v", len(all), err)
			}
			if err := c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); !errors.Is(err, conn.ErrLost) {
				t.Errorf("the connection stays: %v", err)
			}
		})
	}
}

// A dump that would take too much memory fails with the name of the message, and the connection stays.
func TestLargeDumps(t *testing.T) {
	socket, _ := hostile{"sw_interface_dump": func(c uint32) []byte { return bytes.Repeat(details(t, c), 160_000) }}.serve(t)
	c := dial(t, socket)
	for _, dump := range []func() (int, error){
		func() (int, error) {
			all, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, allInterfaces)
			return len(all), err
		},
		func() (int, error) {
			var all []vppif.SwInterfaceDetails
			err := c.Batch(t.Context(), conn.List(allInterfaces, &all), conn.Ask(&memclnt.ControlPing{}, &memclnt.ControlPingReply{}))
			return len(all), err
		},
	} {
		n, err := dump()
		if n > 0 || !errors.Is(err, conn.ErrLarge) || !strings.Contains(err.Error(), "the maximum of sw_interface_details is 64 MiB") {
			t.Errorf("%d details, %v", n, err)
		}
	}
	if err := c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// A panic where messages are taken is one of the connection, and the next connections are made with
// back-off.
func TestPanicsOfTakers(t *testing.T) {
	var h hostile = map[string]func(uint32) []byte{
		"sw_interface_dump": func(c uint32) []byte { return details(t, c) },
		"cli_inband": func(uint32) []byte {
			return frame(t, numberOf("sw_interface_event"), &vppif.SwInterfaceEvent{}, 0)
		},
	}
	socket, clients := h.serve(t)
	l := keep(t, conn.Options{
		Socket: socket, MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond,
		Events: map[api.Message]func([]byte){&vppif.SwInterfaceEvent{}: func([]byte) { panic("the event") }},
	})
	next(t, l.ready)
	err := l.Details(t.Context(), allInterfaces, &vppif.SwInterfaceDetails{}, func(*vppwire.Decoder, []byte) error { panic("the details") })
	if !errors.Is(err, conn.ErrProtocol) || !strings.Contains(err.Error(), "the details") {
		t.Errorf("the call ends with %v", err)
	}
	if why := next(t, l.lost); !errors.Is(why, conn.ErrProtocol) {
		t.Errorf("it is lost because of %v", why)
	}
	next(t, l.ready)
	err = l.Call(t.Context(), &vlib.CliInband{}, &vlib.CliInbandReply{})
	if !errors.Is(err, conn.ErrCut) || !strings.Contains(err.Error(), "the event") {
		t.Errorf("the call that meets the event ends with %v", err)
	}
	next(t, l.ready)
	l.Drop(errors.New("of a watcher"))
	for why := next(t, l.lost); !strings.Contains(why.Error(), "of a watcher"); {
		why = next(t, l.lost)
	}
	next(t, l.ready)
	l.stop()
	if n := len(clients); n != 4 {
		t.Errorf("there were %d connections, want 4", n)
	}
}

func TestPanicAtTheBeginning(t *testing.T) {
	socket, _ := hostile{}.serve(t)
	tries := 0
	l := keep(t, conn.Options{Socket: socket, MinBackoff: time.Millisecond, Begin: func(context.Context, *conn.Conn) error {
		if tries++; tries == 1 {
			panic("begin")
		}
		return nil
	}})
	if why := next(t, l.lost); !errors.Is(why, conn.ErrProtocol) || !strings.Contains(why.Error(), "begin") {
		t.Errorf("it is lost because of %v", why)
	}
	next(t, l.ready)
}

// FuzzStream has VPP say any bytes after its welcome, while calls wait.
func FuzzStream(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 40))
	f.Add(bytes.Repeat([]byte{0xff}, 93))
	for _, m := range []api.Message{&vpe.ShowVersionReply{}, &vppif.SwInterfaceDetails{Mtu: make([]uint32, 4)}, &memclnt.ControlPingReply{}, &vlib.CliInbandReply{Reply: "x"}} {
		out, err := vppwire.Append(nil, numberOf(m.GetMessageName()), m, 0, 1)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(out)
		f.Add(append(slices.Clip(out), out...))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		socket := filepath.Join(t.TempDir(), "s")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			sock, err := listener.Accept()
			if err != nil {
				return
			}
			defer sock.Close()
			in := bufio.NewReader(sock)
			if _, err := vppwire.Read(in, nil); err != nil {
				return
			}
			_, _ = sock.Write(hostileWelcome(t))
			if _, err := vppwire.Read(in, nil); err != nil {
				return
			}
			_, _ = sock.Write(stream)
		}()
		c, err := conn.Dial(t.Context(), socket, "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		c.Limit(100, 1<<20)
		c.OnEvent(&vppif.SwInterfaceEvent{}, func(m []byte) {
			var event vppif.SwInterfaceEvent
			_ = vppwire.Decode(m, &event)
		})
		ended := make(chan error, 1)
		go func() { ended <- c.Run(context.Background()) }()
		_, _ = conn.Dump[vppif.SwInterfaceDetails](t.Context(), c, allInterfaces) // only panics are wrong
		_ = c.Call(t.Context(), &vpe.ShowVersion{}, &vpe.ShowVersionReply{})
		c.Close(errors.New("over"))
		if err := <-ended; !errors.Is(err, conn.ErrLost) {
			t.Errorf("it ends with %v", err)
		}
	})
}
