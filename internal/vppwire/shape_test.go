package vppwire_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.fd.io/govpp/api"
	_ "go.fd.io/govpp/binapi/af_packet"
	_ "go.fd.io/govpp/binapi/arp"
	_ "go.fd.io/govpp/binapi/bond"
	_ "go.fd.io/govpp/binapi/dhcp"
	_ "go.fd.io/govpp/binapi/gre"
	_ "go.fd.io/govpp/binapi/gtpu"
	vppif "go.fd.io/govpp/binapi/interface"
	_ "go.fd.io/govpp/binapi/ip"
	_ "go.fd.io/govpp/binapi/ip_neighbor"
	_ "go.fd.io/govpp/binapi/ipip"
	_ "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/l2"
	_ "go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/memclnt"
	_ "go.fd.io/govpp/binapi/memif"
	_ "go.fd.io/govpp/binapi/rd_cp"
	_ "go.fd.io/govpp/binapi/rdma"
	_ "go.fd.io/govpp/binapi/span"
	_ "go.fd.io/govpp/binapi/tapv2"
	_ "go.fd.io/govpp/binapi/teib"
	"go.fd.io/govpp/binapi/vlib"
	_ "go.fd.io/govpp/binapi/vmxnet3"
	_ "go.fd.io/govpp/binapi/vpe"
	_ "go.fd.io/govpp/binapi/vrrp"
	_ "go.fd.io/govpp/binapi/vxlan"
	_ "go.fd.io/govpp/binapi/vxlan_gpe"
	_ "go.fd.io/govpp/binapi/wireguard"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// messages are all messages of the bindings above, in the order of their names.
func messages() (out []api.Message) {
	all := map[string]api.Message{}
	for _, some := range api.GetRegisteredMessages() {
		maps.Copy(all, some)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}

// fresh is an empty message of the type of m.
func fresh(m api.Message) api.Message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(api.Message)
}

// fill gives each field a value, lists two items, and strings some text.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(7)
	default:
		if v.CanInt() {
			v.SetInt(7)
		} else {
			v.SetUint(7)
		}
	}
}

func encoded(t testing.TB, m api.Message) []byte {
	t.Helper()
	frame, err := vppwire.Append(nil, 1, m, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	return frame[16:]
}

// The bindings read all of each message as it was written, and none that lacks a byte.
func TestEveryMessage(t *testing.T) {
	all := messages()
	if len(all) < 500 {
		t.Fatalf("there are %d messages", len(all))
	}
	for _, m := range all {
		m := fresh(m)
		fill(reflect.ValueOf(m).Elem())
		bytes := encoded(t, m)
		got := fresh(m)
		if err := vppwire.Decode(slices.Clone(bytes), got); err != nil {
			t.Errorf("%s: %v", m.GetMessageName(), err)
			continue
		}
		if again := encoded(t, got); !slices.Equal(again, bytes) {
			t.Errorf("%s is read as another", m.GetMessageName())
		}
		if len(bytes) > vppwire.HeaderLen(m) {
			if err := vppwire.Decode(bytes[:len(bytes)-1], fresh(m)); err == nil {
				t.Errorf("%s is read though its last byte is missing", m.GetMessageName())
			}
		}
		if err := vppwire.Decode(nil, fresh(m)); err == nil && len(bytes) > vppwire.HeaderLen(m) {
			t.Errorf("%s is read from nothing", m.GetMessageName())
		}
	}
}

// allocated is how much memory do asks for, in bytes.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What each message asks for is bounded by its length, whatever its counts say.
func TestCountsBeyondTheMessage(t *testing.T) {
	for _, m := range messages() {
		for _, long := range []int{93, 600} {
			message := bytes.Repeat([]byte{0xff}, long)
			var err error
			if n := allocated(func() { err = vppwire.Decode(message, fresh(m)) }); n > 1<<20 {
				t.Errorf("%s of %d bytes asks for %d bytes: %v", m.GetMessageName(), long, n, err)
			}
		}
	}
	for _, tt := range []struct {
		m    api.Message
		at   int // of the count, behind the header
		size int // of the count
	}{
		{&memclnt.SockclntCreateReply{}, 8, 2},
		{&l2.BridgeDomainDetails{}, -4, 4},
		{&vlib.CliInbandReply{}, -4, 4},
		{&memclnt.APIVersionsReply{}, -4, 4},
	} {
		message := encoded(t, tt.m)
		at := vppwire.HeaderLen(tt.m) + tt.at
		if tt.at < 0 {
			at = len(message) + tt.at
		}
		for i := range tt.size {
			message[at+i] = 0xff
		}
		err := vppwire.Decode(message, fresh(tt.m))
		if !errors.Is(err, vppwire.ErrCount) || !strings.Contains(err.Error(), tt.m.GetMessageName()) {
			t.Errorf("%s with a count of %d bytes of 0xff: %v", tt.m.GetMessageName(), tt.size, err)
		}
	}
}

// A frame that announces much has no room before it comes.
func TestLongFrameThatDoesNotCome(t *testing.T) {
	frame := make([]byte, 16+1000)
	binary.BigEndian.PutUint32(frame[8:], vppwire.MaxMessage)
	var err error
	n := allocated(func() { _, err = vppwire.Read(bufio.NewReader(bytes.NewReader(frame)), nil) })
	if !errors.Is(err, io.ErrUnexpectedEOF) || n > 4<<20 {
		t.Errorf("%d bytes are asked for: %v", n, err)
	}
	binary.BigEndian.PutUint32(frame[8:], vppwire.MaxMessage+1)
	if _, err := vppwire.Read(bufio.NewReader(bytes.NewReader(frame)), nil); !errors.Is(err, vppwire.ErrTooLong) {
		t.Errorf("one byte more: %v", err)
	}
	whole := bytes.Repeat([]byte("0123456789abcdef"), 1<<18+1)
	binary.BigEndian.PutUint32(whole[8:], uint32(len(whole)-16))
	if got, err := vppwire.Read(bufio.NewReader(bytes.NewReader(whole)), nil); err != nil || !bytes.Equal(got, whole[16:]) {
		t.Errorf("a long message is read as %d bytes: %v", len(got), err)
	}
}

// Strings need no end, and are valid.
func TestStrangeStrings(t *testing.T) {
	m := &vppif.SwInterfaceDetails{InterfaceName: strings.Repeat("x", 64), Tag: "ok\xff\xfeé\n\x1b[2J\u009bx", Mtu: make([]uint32, 4)}
	var got vppif.SwInterfaceDetails
	if err := vppwire.Decode(encoded(t, m), &got); err != nil {
		t.Fatal(err)
	}
	if got.InterfaceName != m.InterfaceName || got.Tag != "ok??é??[2J??x" {
		t.Errorf("read are %q and %q", got.InterfaceName, got.Tag)
	}
	page := &vlib.CliInbandReply{Reply: "\xff\n"}
	var reply vlib.CliInbandReply
	if err := vppwire.Decode(encoded(t, page), &reply); err != nil || reply.Reply != "?\n" {
		t.Errorf("read is %q: %v", reply.Reply, err)
	}
}

// FuzzMessages reads any bytes as each kind of message: they are one, which is written as it was, or an
// error.
func FuzzMessages(f *testing.F) {
	all := messages()
	for i, m := range all {
		m := fresh(m)
		fill(reflect.ValueOf(m).Elem())
		f.Add(uint16(i), encoded(f, m))
	}
	f.Add(uint16(0), bytes.Repeat([]byte{0xff}, 93))
	f.Fuzz(func(t *testing.T, kind uint16, message []byte) {
		m := fresh(all[int(kind)%len(all)])
		if vppwire.Decode(message, m) != nil {
			return
		}
		if size := m.(interface{ Size() int }).Size(); size > len(message)-vppwire.HeaderLen(m) {
			t.Errorf("%s of %d bytes is read as one of %d", m.GetMessageName(), len(message), size)
		}
		noText(t, reflect.ValueOf(m).Elem())
	})
}

// noText fails if there is a string that is not of UTF-8.
func noText(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			noText(t, field)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				noText(t, v.Index(i))
			}
		}
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			t.Errorf("there is %q", v.String())
		}
	default: // numbers have no text
	}
}
