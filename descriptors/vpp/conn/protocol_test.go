package conn_test

import (
	"bufio"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// A stranger listens at a socket, and answers each message with bytes.
func stranger(t *testing.T, answer func(message []byte) []byte) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "api.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		sock, err := listener.Accept()
		if err != nil {
			return
		}
		defer sock.Close()
		for in := bufio.NewReader(sock); ; {
			message, err := vppwire.Read(in, nil)
			if err != nil {
				return
			}
			out := answer(message)
			if out == nil {
				return
			}
			if _, err := sock.Write(out); err != nil {
				return
			}
		}
	}()
	return socket
}

// Numbers of messages in strange tables.
const (
	createID, createReplyID, otherReplyID, dumpID = 100, 101, 102, 103
)

func frame(t *testing.T, id uint16, m api.Message, context uint32) []byte {
	out, err := vppwire.Append(nil, id, m, 0, context)
	if err != nil {
		t.Error(err)
	}
	return out
}

func welcome(t *testing.T) []byte {
	table := []memclnt.MessageTableEntry{
		{Index: createID, Name: vppwire.Name(&vppif.CreateLoopback{})},
		{Index: createReplyID, Name: vppwire.Name(&vppif.CreateLoopbackReply{})},
		{Index: otherReplyID, Name: vppwire.Name(&vppif.DeleteLoopbackReply{})},
		{Index: dumpID, Name: vppwire.Name(&vppif.SwInterfaceDump{})}, // else nothing would be made
	}
	return frame(t, vppwire.CreateReplyID, &memclnt.SockclntCreateReply{Index: 1, MessageTable: table}, 1)
}

func TestWhatIsNoVPP(t *testing.T) {
	for name, answer := range map[string][]byte{
		"closes at once":   nil,
		"another protocol": []byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"),
		"another message":  frame(t, 77, &memclnt.ControlPingReply{}, 1),
		"an empty message": make([]byte, 16),
		"half a welcome":   short(welcome(t), 10),
		"no":               frame(t, vppwire.CreateReplyID, &memclnt.SockclntCreateReply{Response: -1}, 1),
	} {
		t.Run(name, func(t *testing.T) {
			socket := stranger(t, func([]byte) []byte { return answer })
			if _, err := conn.Dial(t.Context(), socket, "test"); err == nil {
				t.Error("it is taken for VPP")
			}
		})
	}
}

// short is a frame whose message lacks n bytes.
func short(frame []byte, n int) []byte {
	out := append([]byte(nil), frame[:len(frame)-n]...)
	size := len(out) - 16
	out[8], out[9], out[10], out[11] = byte(size>>24), byte(size>>16), byte(size>>8), byte(size)
	return out
}

// What is strange in an answer ends that call; what is strange besides is dropped.
func TestStrangeAnswers(t *testing.T) {
	reply := func(context uint32) []byte {
		return frame(t, createReplyID, &vppif.CreateLoopbackReply{SwIfIndex: 7}, context)
	}
	tests := []struct {
		name   string
		answer func(context uint32) []byte
		want   error // nil: the call succeeds
	}{
		{"too short", func(c uint32) []byte { return short(reply(c), 3) }, conn.ErrProtocol},
		{"without a context", func(c uint32) []byte { return append(short(reply(c), 11), reply(c)...) }, nil},
		{"nothing, before", func(c uint32) []byte { return append(make([]byte, 16), reply(c)...) }, nil},
		{"of another kind", func(c uint32) []byte { return frame(t, otherReplyID, &vppif.DeleteLoopbackReply{}, c) }, conn.ErrProtocol},
		{"unknown number, before", func(c uint32) []byte {
			return append(frame(t, 60000, &vppif.DeleteLoopbackReply{}, c+1000), reply(c)...)
		}, nil},
		{"twice", func(c uint32) []byte { return append(reply(c), reply(c)...) }, nil},
		{"half of it, then nothing", func(c uint32) []byte { return reply(c)[:20] }, conn.ErrCut},
		{"refused", func(c uint32) []byte {
			return frame(t, createReplyID, &vppif.CreateLoopbackReply{Retval: int32(api.INVALID_VALUE)}, c)
		}, api.INVALID_VALUE},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			welcomed, cut := false, false
			socket := stranger(t, func(m []byte) []byte {
				if !welcomed {
					welcomed = true
					return welcome(t)
				}
				if cut {
					return nil
				}
				cut = errors.Is(tt.want, conn.ErrCut)
				return tt.answer(vppwire.Context(m, &vppif.CreateLoopback{}))
			})
			c := dial(t, socket)
			if cut := errors.Is(tt.want, conn.ErrCut); cut {
				go func() { _ = loopback(t.Context(), c) }() // the second message, at which it closes
			}
			var got vppif.CreateLoopbackReply
			err := c.Call(t.Context(), &vppif.CreateLoopback{MacAddress: ethernet_types.MacAddress{2}}, &got)
			if !errors.Is(err, tt.want) || err == nil && got.SwIfIndex != 7 {
				t.Errorf("%+v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

// What a release lacks is decided by message.
func TestOlderRelease(t *testing.T) {
	_, socket := start(t, vppsim.Options{Release: "22.02"})
	l := keep(t, conn.Options{Socket: socket})
	next(t, l.ready)
	newer, older := &l2.BridgeDomainAddDelV2{}, &l2.BridgeDomainAddDel{}
	if l.Has(newer) || !l.Has(older) {
		t.Error("22.02 has another table")
	}
	if m, err := l.First(newer, older); err != nil || m != api.Message(older) {
		t.Errorf("the newest of two is %v, %v", m, err)
	}
	_, err := l.First(newer)
	var missing *conn.Missing
	if !errors.As(err, &missing) || !errors.Is(err, scheduler.ErrUnimplemented) {
		t.Fatal(err)
	}
	const want = "VPP 22.02-simulated has no message bridge_domain_add_del_v2_600b7170 that fits"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if err := l.Call(t.Context(), newer, &l2.BridgeDomainAddDelV2Reply{}); !errors.As(err, &missing) {
		t.Errorf("called all the same: %v", err)
	}
}
