package size

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// TestMessageIsItsMemory compares the estimates for samples of all models with the heap that
// copies of them take. Messages of many small fields take more, because the heap rounds up.
func TestMessageIsItsMemory(t *testing.T) {
	var types Types
	for _, model := range models.BuiltIn().All() {
		samples, err := sample.All(model)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range samples {
			t.Run(fmt.Sprint(model.Name(), i), func(t *testing.T) { compare(t, &types, m) })
		}
	}
}

// TestOtherMessages counts messages that the models do not have: maps, nested and unset oneofs,
// unknown fields, and long lists.
func TestOtherMessages(t *testing.T) {
	tree, err := structpb.NewStruct(map[string]any{
		"text": strings.Repeat("x", 500), "none": nil, "list": []any{1.0, "two", map[string]any{"three": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := &acl.ACL{Name: "list"}
	for i := range 100 {
		rules.Rules = append(rules.Rules, &acl.ACL_Rule{IpRule: &acl.ACL_Rule_IpRule{Ip: &acl.ACL_Rule_IpRule_Ip{SourceNetwork: fmt.Sprint(i)}}})
	}
	unknown := &l3.Route{}
	if err := proto.Unmarshal(append([]byte{0xfa, 0x3f, 0xe8, 0x07}, make([]byte, 1000)...), unknown); err != nil {
		t.Fatal(err)
	}
	var types Types
	for name, m := range map[string]proto.Message{
		"a tree":         tree,
		"a long list":    rules,
		"unknown fields": unknown,
		"bytes":          &anypb.Any{TypeUrl: "type", Value: make([]byte, 1000)},
		"an empty oneof": &structpb.Value{},
	} {
		t.Run(name, func(t *testing.T) { compare(t, &types, m) })
	}
}

// compare compares the estimate for m with the heap that copies of m take.
func compare(t *testing.T, types *Types, m proto.Message) {
	t.Helper()
	const copies = 500
	wire, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var all [copies]proto.Message
	before := heap()
	for i := range all {
		all[i] = m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(wire, all[i]); err != nil { // a clone would share its strings
			t.Fatal(err)
		}
	}
	held := (heap() - before) / copies
	if n := types.Message(all[0]); n < held*2/3 || n > held*3/2+16 {
		t.Errorf("estimated %d bytes, holds %d: %v", n, held, m)
	}
	runtime.KeepAlive(all)
}

func heap() int {
	runtime.GC() // what sync.Pools have survives this one
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestOpaqueMessages counts messages whose fields only their accessors know, also inside of
// others.
func TestOpaqueMessages(t *testing.T) {
	long := strings.Repeat("x", 1000)
	options := &descriptorpb.FieldOptions{UninterpretedOption: []*descriptorpb.UninterpretedOption{{IdentifierValue: &long}}}
	route := (&l3.Route{}).ProtoReflect().Descriptor()
	dynamic := dynamicpb.NewMessage(route)
	dynamic.Set(route.Fields().ByName("gw_addr"), protoreflect.ValueOfString(long))
	field := protodesc.ToFieldDescriptorProto(route.Fields().Get(0))
	field.Options = options
	var types Types
	for name, m := range map[string]proto.Message{"with extensions": options, "inside of another": field, "dynamic": dynamic} {
		if n := types.Message(m); n < 1000 || n > 2000 {
			t.Errorf("%s: %d bytes; expected a little more than 1000", name, n)
		}
	}
}

// TestNothing counts what is absent, and counts from several goroutines.
func TestNothing(t *testing.T) {
	var types Types
	var none *l3.Route
	if a, b := types.Message(nil), types.Message(none); a != 0 || b != 0 {
		t.Errorf("nil messages have %d and %d bytes", a, b)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if n := types.Message(&structpb.Value{}); n < 1 || n > 200 {
				t.Errorf("an empty message has %d bytes", n)
			}
		})
	}
	all.Wait()
}

// TestValueCountsEverything makes each part of a value long, and expects it in the estimate.
func TestValueCountsEverything(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	message := wrapperspb.String(long)
	with := func(set func(*graph.Value)) *graph.Value {
		v := &graph.Value{}
		set(v)
		return v
	}
	for name, v := range map[string]*graph.Value{
		"key":        {Key: long},
		"data":       {Data: message},
		"error":      with(func(v *graph.Value) { v.SetErr(errors.New(long)) }),
		"declared":   with(func(v *graph.Value) { v.SetDeclared(&value.Declared{Data: message}) }),
		"warnings":   with(func(v *graph.Value) { v.SetDeclared(&value.Declared{Warnings: []string{long}}) }),
		"dependency": {Deps: []value.Dep{{Key: long}}},
		"label":      {Deps: []value.Dep{{Label: long}}},
		"any of":     {Deps: []value.Dep{{Any: &value.AnyOf{Keys: []string{long}}}}},
		"prefix":     {Deps: []value.Dep{{Any: &value.AnyOf{Prefixes: []string{long}}}}},
		"derived":    with(func(v *graph.Value) { v.SetDerived([]*graph.Value{{Key: long}}) }),
	} {
		var types Types
		if n := types.Value(v); n < len(long) || n > len(long)+1000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

// TestLargeMessagesCountOnce has the same messages in a value and in operations.
func TestLargeMessagesCountOnce(t *testing.T) {
	var types Types
	part := &graph.Value{Key: "part", Data: wrapperspb.String(strings.Repeat("p", 5000))}
	v := &graph.Value{Key: "base", Data: wrapperspb.String(strings.Repeat("b", 5000))}
	v.SetDerived([]*graph.Value{part})
	part.Size = int32(types.Value(part))
	record := Record{Types: &types}
	if n := record.Value(v); n < 10_000 || n > 11_000 {
		t.Errorf("the value has %d bytes", n)
	}
	other := wrapperspb.String(strings.Repeat("o", 5000))
	for i, want := range []struct {
		m       proto.Message
		atLeast int
	}{{v.Data.(proto.Message), 0}, {part.Data.(proto.Message), 0}, {other, 5000}, {other, 0}, {nil, 0}} {
		if n := record.Message(want.m); n < want.atLeast || n > want.atLeast+100 {
			t.Errorf("message %d adds %d bytes; expected %d", i, n, want.atLeast)
		}
	}
}

// BenchmarkMessage counts a list of 10,000 rules, and a route.
func BenchmarkMessage(b *testing.B) {
	list := &acl.ACL{}
	for range 10_000 {
		ports := &acl.ACL_Rule_IpRule_PortRange{UpperPort: 90}
		list.Rules = append(list.Rules, &acl.ACL_Rule{IpRule: &acl.ACL_Rule_IpRule{
			Ip:  &acl.ACL_Rule_IpRule_Ip{SourceNetwork: "12.3.4.0/24"},
			Tcp: &acl.ACL_Rule_IpRule_Tcp{DestinationPortRange: ports, SourcePortRange: proto.CloneOf(ports)},
		}})
	}
	for name, m := range map[string]proto.Message{"10k-rules": list, "route": &l3.Route{DstNetwork: "10.0.0.0/8", OutgoingInterface: "a"}} {
		b.Run(name, func(b *testing.B) {
			var types Types
			for b.Loop() {
				types.Message(m)
			}
		})
	}
}
