package models_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/keyplane/keyplane/models"
)

// TestForeignModels makes each built-in model again from its .proto files, as a program does that
// was not built with it. Keys are the same, also those of empty values, which have none.
func TestForeignModels(t *testing.T) {
	for _, own := range models.BuiltIn().All() {
		if own.Class != "config" {
			continue
		}
		files, err := protodesc.NewFiles(own.Files())
		if err != nil {
			t.Fatal(err)
		}
		found, err := files.FindDescriptorByName(protoreflect.FullName(own.ProtoName()))
		if err != nil {
			t.Fatal(err)
		}
		foreign := models.DefineMessage(models.Definition{Module: own.Module, Version: own.Version, Type: own.Type, NameTemplate: own.NameTemplate()},
			dynamicpb.NewMessageType(found.(protoreflect.MessageDescriptor)))
		if !slices.Equal(foreign.KeyFields(), own.KeyFields()) || foreign.Prefix() != own.Prefix() || foreign.Singleton() != own.Singleton() {
			t.Errorf("%s: %s with %v, %v; expected %s with %v, %v", own.Name(), foreign.Prefix(), foreign.KeyFields(), foreign.Singleton(), own.Prefix(), own.KeyFields(), own.Singleton())
		}
		for _, text := range []string{"", "a", "10.0.0.1", "10.0.0.1/24", "2001:db8::1", "2001:db8::1/64", "alloc:net/if"} {
			v := own.New()
			fill(v.ProtoReflect(), own.KeyFields(), text)
			compareKeys(t, own, foreign, v)
		}
	}
}

// fill sets fields: texts to text, numbers and enumerations to 1.
func fill(m protoreflect.Message, names []string, text string) {
	for _, name := range names {
		switch fd := m.Descriptor().Fields().ByName(protoreflect.Name(name)); {
		case fd.Kind() == protoreflect.StringKind:
			m.Set(fd, protoreflect.ValueOfString(text))
		case fd.Kind() == protoreflect.Uint32Kind && text != "":
			m.Set(fd, protoreflect.ValueOfUint32(1))
		case fd.Kind() == protoreflect.Int32Kind && text != "":
			m.Set(fd, protoreflect.ValueOfInt32(1))
		case fd.Enum() != nil && text != "":
			m.Set(fd, protoreflect.ValueOfEnum(1))
		}
	}
}

func compareKeys(t *testing.T, own, foreign *models.Model, v proto.Message) {
	t.Helper()
	data, err := proto.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	same := foreign.New()
	if err := proto.Unmarshal(data, same); err != nil {
		t.Fatal(err)
	}
	want, wantErr := own.Key(v)
	got, err := foreign.Key(same)
	if got != want || (err == nil) != (wantErr == nil) {
		t.Errorf("%s: %v: %q, %v; expected %q, %v", own.Name(), v, got, err, want, wantErr)
	}
}
