package models

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// hidden replaces a secret.
const hidden = "(secret)"

// Redacted returns m without its secrets, the fields with the option debug_redact. Use it
// for logs and for everything that is stored or sent. Texts become "(secret)", numbers are
// removed. It returns m itself if there are none.
func Redacted(m proto.Message) proto.Message {
	if m == nil {
		return nil
	}
	any := false
	secrets(m.ProtoReflect(), func(protoreflect.Message, protoreflect.FieldDescriptor) { any = true })
	if !any {
		return m
	}
	out := proto.Clone(m)
	secrets(out.ProtoReflect(), hide)
	return out
}

// CheckSecrets refuses a value with a secret that Redacted hid: a client read the value without
// its secrets, and storing it would replace them by the text that stands for them. The error
// joins a FieldError for each such field. It is for values that clients declare over the APIs
// that hide secrets.
func CheckSecrets(m proto.Message) error {
	if m == nil {
		return nil
	}
	var errs []error
	secrets(m.ProtoReflect(), func(in protoreflect.Message, fd protoreflect.FieldDescriptor) {
		if fd.Kind() == protoreflect.StringKind && !fd.IsList() && in.Get(fd).String() == hidden {
			errs = append(errs, &FieldError{pathTo(m.ProtoReflect(), in, string(fd.Name())), hidden,
				"the secret itself; this text replaces secrets in answers"})
		}
	})
	return errors.Join(errs...)
}

// pathTo returns the path from a message to a field of a message within it. It is slow, and
// only for errors.
func pathTo(from, to protoreflect.Message, field string) (path string) {
	if from == to {
		return field
	}
	below := func(step string, m protoreflect.Message) bool {
		if rest := pathTo(m, to, field); rest != "" {
			path = step + "." + rest
		}
		return path == ""
	}
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(fd.Name())
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(key protoreflect.MapKey, one protoreflect.Value) bool {
				return below(fmt.Sprintf("%s[%v]", name, key), one.Message())
			})
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				below(fmt.Sprintf("%s[%d]", name, i), v.List().Get(i).Message())
			}
		case fd.Message() != nil && !fd.IsMap():
			below(name, v.Message())
		}
		return path == ""
	})
	return path
}

// secrets calls found for each secret in m or in a message below it.
func secrets(m protoreflect.Message, found func(m protoreflect.Message, fd protoreflect.FieldDescriptor)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case isSecret(fd):
			found(m, fd)
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, one protoreflect.Value) bool {
				secrets(one.Message(), found)
				return true
			})
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				secrets(v.List().Get(i).Message(), found)
			}
		case fd.Message() != nil && !fd.IsMap():
			secrets(v.Message(), found)
		}
		return true
	})
}

// isSecret reports whether the field has the option debug_redact.
func isSecret(fd protoreflect.FieldDescriptor) bool {
	options, ok := fd.Options().(*descriptorpb.FieldOptions)
	return ok && options.GetDebugRedact()
}

// shownOf returns the part of raw, an invalid value of fd, that an error may show: no
// secrets.
func shownOf(fd protoreflect.FieldDescriptor, raw []byte) any {
	if isSecret(fd) || fd.Message() != nil && slices.ContainsFunc(fieldsIn(fd.Message()), isSecret) {
		return nil
	}
	return shown(raw)
}

// fieldsIn returns the fields of a message type.
func fieldsIn(m protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	out := make([]protoreflect.FieldDescriptor, m.Fields().Len())
	for i := range out {
		out[i] = m.Fields().Get(i)
	}
	return out
}

// hide replaces a secret.
func hide(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	if fd.Kind() == protoreflect.StringKind && !fd.IsList() {
		m.Set(fd, protoreflect.ValueOfString(hidden))
		return
	}
	m.Clear(fd)
}
