package grpc

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// A slowReader is the connection of a client that takes pause for each write.
type slowReader struct {
	http.ResponseWriter
	pause    time.Duration
	deadline time.Time
}

func (r *slowReader) SetWriteDeadline(at time.Time) error {
	r.deadline = at
	return nil
}

func (r *slowReader) Write(p []byte) (int, error) {
	if !r.deadline.IsZero() && time.Now().Add(r.pause).After(r.deadline) {
		<-time.After(time.Until(r.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	<-time.After(r.pause)
	return len(p), nil
}

// A client that reads nothing of an answer soon loses it, and so does one that reads too slowly.
func TestUnreadAnswersAreBrokenOff(t *testing.T) {
	for name, test := range map[string]struct {
		pause, patience, want time.Duration // of a part, for a part, until the answer is broken off
	}{
		"none is read":       {time.Hour, maxUnread, maxUnread},
		"some is read":       {maxUnread / 2, maxUnread, maxAnswer},
		"all is read":        {time.Second, maxUnread, 0},
		"by the agent's own": {maxUnread / 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slowReader{ResponseWriter: httptest.NewRecorder(), pause: test.pause}
				a := &answering{ResponseWriter: w, control: http.NewResponseController(w), call: &call{wrote: make(chan struct{}, 1)}, patience: test.patience}
				begun := time.Now()
				_, err := a.Write(make([]byte, 50*maxPart))
				took := time.Since(begun)
				if (err != nil) != (test.want > 0) || err != nil && took != test.want {
					t.Errorf("%v after %v, want an end after %v", err, took, test.want)
				}
			})
		})
	}
}

// The deadline of a stream counts only while something is written.
func TestStreamsMayPause(t *testing.T) {
	w := &slowReader{ResponseWriter: httptest.NewRecorder()}
	a := &answering{ResponseWriter: w, control: http.NewResponseController(w), call: &call{}, patience: maxUnreadOfStream, stream: true}
	if _, err := a.Write([]byte("x")); err != nil || w.deadline.IsZero() {
		t.Errorf("%v; the deadline is %v", err, w.deadline)
	}
	a.Flush()
	if !w.deadline.IsZero() {
		t.Errorf("between messages the deadline is %v", w.deadline)
	}
}

func TestAwaitedValuesAreCounted(t *testing.T) {
	s := &service{awaited: new(atomic.Int64)}
	alone, err := s.countAwaited(2 * maxAwaited)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.countAwaited(1); err == nil || !strings.Contains(err.Error(), "calls wait for 200000 values already; the maximum is 100000") {
		t.Error(err)
	}
	alone()
	for range 2 {
		leave, err := s.countAwaited(maxAwaited / 2)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
}

// FuzzCost: the cost of a message is at least its size, and that of an empty message is that of a struct. A bound
// decides as the whole cost does.
func FuzzCost(f *testing.F) {
	known := models.BuiltIn()
	packed, _ := anypb.New(&interfaces.Interface{Name: "if1", IpAddresses: []string{"10.1.0.1/16"}})
	valid, _ := proto.Marshal(&generic.SetConfigRequest{Updates: []*generic.UpdateItem{
		{}, {Labels: map[string]string{"a": "b"}, Item: &generic.Item{Data: &generic.Data{Union: &generic.Data_Any{Any: packed}}}},
	}})
	f.Add(valid)
	f.Add([]byte{0x0a, 0})
	f.Add([]byte{0x0a, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, wire []byte) {
		request := &generic.SetConfigRequest{}
		cost := costOf(known, request.ProtoReflect().Descriptor(), wire, math.MaxInt64)
		if most := int64(1000); (costOf(known, request.ProtoReflect().Descriptor(), wire, most) > most) != (cost > most) {
			t.Errorf("the cost is %d, and bounded by %d it is decided otherwise", cost, most)
		}
		if proto.Unmarshal(wire, request) != nil {
			return
		}
		if least := int64(len(wire) + len(request.GetUpdates())*bytesOfMessage); cost < least/2 {
			t.Errorf("the cost is %d, want at least %d", cost, least/2)
		}
	})
}

// A value counts whether its type comes before or after it, and messages nested too deeply count, too.
func TestCostOfValues(t *testing.T) {
	known := models.BuiltIn()
	value, err := proto.Marshal(&interfaces.Interface{IpAddresses: make([]string, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	name := "x/ligato.linux.interfaces.Interface"
	of := func(first, second protowire.Number) (wire []byte) {
		for _, n := range []protowire.Number{first, second} {
			wire = protowire.AppendTag(wire, n, protowire.BytesType)
			wire = protowire.AppendBytes(wire, map[protowire.Number][]byte{1: []byte(name), 2: value}[n])
		}
		return wire
	}
	descriptor := (&anypb.Any{}).ProtoReflect().Descriptor()
	before, after := costOf(known, descriptor, of(1, 2), math.MaxInt64), costOf(known, descriptor, of(2, 1), math.MaxInt64)
	if before != after || before < 1000*bytesOfElement {
		t.Errorf("the costs are %d and %d", before, after)
	}
	deep := counter{known: known, most: math.MaxInt64}
	if deep.message(descriptor, value, 0); deep.cost != bytesOfEmpty*int64(len(value)) {
		t.Errorf("nested too deeply: %d", deep.cost)
	}
}
