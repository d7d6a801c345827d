package kind

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Accepts returns an error if v is not a message of type V.
func Accepts[V proto.Message](v proto.Message) error {
	if _, ok := v.(V); !ok {
		var want V
		return fmt.Errorf("value is a %s; expected a %s", nameOf(v), nameOf(want))
	}
	return nil
}

// nameOf returns the full name of a message's type for errors. A descriptor may be asked
// about a message that nobody has set.
func nameOf(v proto.Message) string {
	if v == nil {
		return "nil"
	}
	return string(v.ProtoReflect().Descriptor().FullName())
}

// IsMeta reports whether m is metadata of type M.
func IsMeta[M any](m any) bool {
	_, is := m.(M)
	return is
}

// Boxed returns metadata in its stored form: nil for struct{}.
func Boxed[M any](m M) any {
	if _, none := any(m).(struct{}); none {
		return nil
	}
	return m
}

// Meta returns the metadata of type M, or the zero value if none is known.
func Meta[M any](x any) M {
	m, _ := x.(M)
	return m
}

// Override replaces a function by one that has a type, unless that is nil. The values that it gets must
// have the type: see Accepts.
func Override[V proto.Message, R any](f *func(string, proto.Message) R, typed func(string, V) R) {
	if typed != nil {
		*f = func(key string, v proto.Message) R { return typed(key, v.(V)) }
	}
}
