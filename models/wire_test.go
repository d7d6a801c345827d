package models_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato"
	_ "github.com/keyplane/keyplane/proto/ligato/configurator"
	_ "github.com/keyplane/keyplane/proto/ligato/generic"
	_ "github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	_ "github.com/keyplane/keyplane/proto/ligato/linux/punt"
)

// testdata/wire.txt is what the wire has to be. It is not made from our .proto
// files and changes only when the wire does.
func TestMessagesAreThoseOfTheWire(t *testing.T) {
	want, err := os.ReadFile("testdata/wire.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(renderFiles(), "\n")); diff != "" {
		t.Errorf("messages differ from the wire (-wire +ours):\n%s\n"+
			"A new field or message is meant: add the lines with + to testdata/wire.txt. A changed or lost line breaks stores and clients: "+
			"give the field a new number instead (CONTRIBUTING.md, \"Add a field\")", diff)
	}
}

// testdata/models.txt is what the table of models has to be.
func TestModelsAreThoseOfTheWire(t *testing.T) {
	want, err := os.ReadFile("testdata/models.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, m := range models.BuiltIn().All() {
		fmt.Fprintf(&got, "%s\n  class %s module %s version %s type %s\n", m.Name(), m.Class, m.Module, m.Version, m.Type)
		fmt.Fprintf(&got, "  prefix %s\n  name %s\n", m.Prefix(), cmp.Or(m.NameTemplate(), "-"))
		fmt.Fprintf(&got, "  message %s in %s\n", m.ProtoName(), m.ProtoFile())
	}
	if diff := gocmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("models differ from the wire (-wire +ours):\n%s", diff)
	}
}

func renderFiles() string {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(fd protoreflect.FileDescriptor) bool {
		if strings.HasPrefix(fd.Path(), "ligato/") {
			files = append(files, fd)
		}
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int { return cmp.Compare(a.Path(), b.Path()) })
	var out, extensions []string
	for _, fd := range files {
		out = append(out, fmt.Sprintf("file %s package %s", fd.Path(), fd.Package()))
		out = append(out, renderServices(fd.Services())...)
		types := append(renderEnums(fd.Enums()), renderMessages(fd.Messages())...)
		slices.SortFunc(types, func(a, b string) int { return cmp.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
		out = append(out, types...)
		for i := range fd.Extensions().Len() {
			extensions = append(extensions, renderExtension(fd.Extensions().Get(i)))
		}
	}
	return strings.Join(append(out, extensions...), "\n") + "\n"
}

func renderServices(services protoreflect.ServiceDescriptors) []string {
	var out []string
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			stream := ""
			if m.IsStreamingServer() {
				stream = "stream "
			}
			out = append(out, fmt.Sprintf("rpc /%s/%s %s %s%s", m.Parent().FullName(), m.Name(), m.Input().FullName(), stream, m.Output().FullName()))
		}
	}
	slices.Sort(out)
	return out
}

func renderEnums(enums protoreflect.EnumDescriptors) []string {
	var out []string
	for i := range enums.Len() {
		text := "enum " + string(enums.Get(i).FullName())
		values := enums.Get(i).Values()
		for j := range values.Len() {
			text += fmt.Sprintf(" %s=%d", values.Get(j).Name(), values.Get(j).Number())
		}
		out = append(out, text)
	}
	return out
}

// renderMessages renders each message, and those inside it as messages of their own.
func renderMessages(messages protoreflect.MessageDescriptors) []string {
	var out []string
	for i := range messages.Len() {
		md := messages.Get(i)
		if md.IsMapEntry() {
			continue
		}
		text := "message " + string(md.FullName())
		var fields []protoreflect.FieldDescriptor
		for j := range md.Fields().Len() {
			fields = append(fields, md.Fields().Get(j))
		}
		slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
		for _, fd := range fields {
			text += "\n  " + renderField(fd)
		}
		out = append(out, text)
		out = append(out, renderEnums(md.Enums())...)
		out = append(out, renderMessages(md.Messages())...)
	}
	return out
}

func renderField(fd protoreflect.FieldDescriptor) string {
	text := fmt.Sprintf("%d %s %s ", fd.Number(), fd.Name(), fd.JSONName())
	if fd.IsList() {
		text += "repeated "
	}
	text += typeName(fd)
	if of := fd.ContainingOneof(); of != nil {
		text += " oneof=" + string(of.Name())
	}
	options := fd.Options().(*descriptorpb.FieldOptions)
	if options.GetDeprecated() {
		text += " deprecated"
	}
	hint := proto.GetExtension(options, ligato.E_LigatoOptions).(*ligato.LigatoOptions)
	if hint.GetType() != ligato.LigatoOptions_UNSPECIFIED {
		text += " opt=" + hint.GetType().String()
	}
	if r := hint.GetIntRange(); r != nil {
		text += fmt.Sprintf(" opt=%d..%d", r.GetMinimum(), r.GetMaximum())
	}
	return text
}

func renderExtension(xd protoreflect.ExtensionDescriptor) string {
	return fmt.Sprintf("extension %s %d %s %s", xd.ContainingMessage().FullName(), xd.Number(), xd.FullName(), typeName(xd))
}

func typeName(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return "map<" + typeName(fd.MapKey()) + "," + typeName(fd.MapValue()) + ">"
	case fd.Enum() != nil:
		return string(fd.Enum().FullName())
	case fd.Message() != nil:
		return string(fd.Message().FullName())
	default:
		return fd.Kind().String()
	}
}
