package testkit

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// Parse parses a value in the text format of Protocol Buffers.
func Parse[V proto.Message](t testing.TB, text string) V {
	t.Helper()
	var none V
	v := none.ProtoReflect().New().Interface().(V)
	if err := prototext.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
