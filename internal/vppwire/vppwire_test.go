package vppwire_test

import (
	"bufio"
	"bytes"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A message that is too short is an error, also where a longer one was before it.
func TestShortMessageInAUsedBuffer(t *testing.T) {
	m := &vppif.SwInterfaceSetFlags{SwIfIndex: 7, Flags: 3}
	whole, err := vppwire.Append(nil, 1, m, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	short := bytes.Clone(whole[:len(whole)-4])
	short[11] -= 4
	in := bufio.NewReader(bytes.NewReader(append(whole, short...)))
	message, err := vppwire.Read(in, nil)
	var got vppif.SwInterfaceSetFlags
	if err != nil || vppwire.Decode(message, &got) != nil || got != *m {
		t.Fatalf("%+v, %v", got, err)
	}
	message, err = vppwire.Read(in, message)
	if err != nil || vppwire.Decode(message, &got) == nil {
		t.Errorf("it is read as %+v, %v", got, err)
	}
}

// Whatever comes is a message or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 2})
	f.Fuzz(func(_ *testing.T, message []byte) {
		var details vppif.SwInterfaceDetails
		_ = vppwire.Decode(message, &details) // only panics are wrong
		_, _, _ = vppwire.ID(message), vppwire.Client(message), vppwire.Context(message, &details)
	})
}
