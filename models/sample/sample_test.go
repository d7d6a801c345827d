package sample_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
	"github.com/keyplane/keyplane/proto/ligato"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// refused are the fields that no agent accepts, or that have no effect in any value.
var refused = []protoreflect.FullName{
	"ligato.vpp.srv6.Steering.policy_index", // an index of VPP changes at its restart
	"ligato.vpp.wireguard.Peer.flags",       // a state of VPP
}

// TestEveryFieldIsInASample looks for each field of the built-in models, apart from deprecated
// ones.
func TestEveryFieldIsInASample(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		if m.Class != "config" {
			continue
		}
		all, err := sample.All(m)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[protoreflect.FullName]bool{}
		for _, v := range all {
			if _, err := m.Key(v); err != nil {
				t.Errorf("%s: %v", m.Name(), err)
			}
			mark(v.ProtoReflect(), seen)
		}
		missing(m.New().ProtoReflect().Descriptor(), seen, func(name protoreflect.FullName) {
			if !slices.Contains(refused, name) {
				t.Errorf("%s: no sample has %s", m.Name(), name)
			}
		})
	}
}

// mark adds the fields that are set in a message and in those below it.
func mark(m protoreflect.Message, seen map[protoreflect.FullName]bool) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		seen[fd.FullName()] = true
		switch {
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				mark(v.List().Get(i).Message(), seen)
			}
		default:
			mark(v.Message(), seen)
		}
		return true
	})
}

// missing reports the fields of a message type, and of those below it, that are not in seen.
func missing(md protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool, report func(protoreflect.FullName)) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		switch options, _ := fd.Options().(*descriptorpb.FieldOptions); {
		case options.GetDeprecated():
		case !seen[fd.FullName()]:
			report(fd.FullName())
		case fd.Message() != nil:
			missing(fd.Message(), seen, report)
		}
	}
}

// TestOthersGetACopy changes a sample; the next caller sees nothing of it.
func TestOthersGetACopy(t *testing.T) {
	m, _ := models.BuiltIn().ByName("linux.l3.route")
	first, err := sample.Of(m)
	if err != nil {
		t.Fatal(err)
	}
	proto.Reset(first)
	if again, err := sample.Of(m); err != nil || proto.Equal(first, again) {
		t.Errorf("%v, %v", again, err)
	}
}

// TestModelOfAnotherProgram makes the sample of a model that is not built in. DHCPLease has
// texts, a flag and addresses.
func TestModelOfAnotherProgram(t *testing.T) {
	m := models.Define[*interfaces.DHCPLease](models.Definition{Module: "acme", Version: "v1", Type: "lease", NameTemplate: "{{.InterfaceName}}"})
	got, err := sample.Of(m.Model)
	if err != nil {
		t.Fatal(err)
	}
	want := &interfaces.DHCPLease{}
	err = protojson.Unmarshal([]byte(`{"interface_name":"interface_name","host_name":"host_name","is_ipv6":true,"host_phys_address":"host_phys_address",
		"host_ip_address":"192.0.2.0/24","router_ip_address":"192.0.2.0/24"}`), want)
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// of returns the sample of a model of another program whose values are of type T.
func of[T proto.Message](t *testing.T) string {
	t.Helper()
	m := models.Define[T](models.Definition{Module: "acme", Version: "v1", Type: "thing", NameTemplate: "one"})
	got, err := sample.Of(m.Model)
	if err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), " ", "")
}

// TestEveryTypeOfField makes values with fields of all types. Messages that contain themselves have an end.
func TestEveryTypeOfField(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"bool":                                {of[*wrapperspb.BoolValue](t), `true`},
		"int32":                               {of[*wrapperspb.Int32Value](t), `1`},
		"uint32":                              {of[*wrapperspb.UInt32Value](t), `1`},
		"int64":                               {of[*wrapperspb.Int64Value](t), `"1"`},
		"uint64":                              {of[*wrapperspb.UInt64Value](t), `"1"`},
		"float":                               {of[*wrapperspb.FloatValue](t), `1`},
		"double":                              {of[*wrapperspb.DoubleValue](t), `1`},
		"string":                              {of[*wrapperspb.StringValue](t), `"value"`},
		"bytes":                               {of[*wrapperspb.BytesValue](t), `"dmFsdWU="`},
		"list of texts":                       {of[*fieldmaskpb.FieldMask](t), `"paths"`},
		"map, and messages within themselves": {of[*structpb.Struct](t), `{"key":null}`},
		"enum, and messages":                  {of[*ligato.LigatoOptions](t), `{"type":"IP","intRange":{"minimum":"1","maximum":"1"}}`},
		"list of messages": {of[*descriptorpb.UninterpretedOption](t), `{"name":[{"namePart":"name_part","isExtension":true}],"identifierValue":"identifier_value",` +
			`"positiveIntValue":"1","negativeIntValue":"1","doubleValue":1,"stringValue":"c3RyaW5nX3ZhbHVl","aggregateValue":"aggregate_value"}`},
		"map of texts": {of[*generic.GetConfigRequest](t), `{"ids":[{"model":"model","name":"name"}],"labels":{"key":"value"}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s; expected %s", name, c.got, c.want)
		}
	}
}
