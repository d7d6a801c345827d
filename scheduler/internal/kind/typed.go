package kind

import (
	"encoding/json"
	"fmt"
	"reflect"

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

// A Codec writes metadata, and reads it.
type Codec struct {
	Save func(meta any) ([]byte, error)
	Load func(data []byte) (any, error)
}

// CodecOf returns the Codec of metadata of type M: JSON. Save fails if that would lose something, such
// as a field that is not exported.
func CodecOf[M any]() Codec {
	load := func(data []byte) (any, error) {
		if len(data) == 0 {
			return nil, nil // none was known, which is not the same as the zero value
		}
		var m M
		err := json.Unmarshal(data, &m)
		return Boxed(m), err
	}
	save := func(meta any) ([]byte, error) {
		if meta == nil {
			return nil, nil
		}
		data, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		if again, err := load(data); err != nil || !reflect.DeepEqual(again, meta) {
			return nil, fmt.Errorf("JSON loses a part of metadata of type %T", meta)
		}
		return data, nil
	}
	return Codec{save, load}
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
