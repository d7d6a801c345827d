package grpc

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/configurator"
)

// A place is where values of one message are in a configurator.Config: a field of a group.
type place struct{ group, field protoreflect.FieldDescriptor }

// places returns the places by the name of the message. Models without a place have values
// only in the generic services.
var places = sync.OnceValue(func() map[protoreflect.FullName]place {
	out := map[protoreflect.FullName]place{}
	groups := (&configurator.Config{}).ProtoReflect().Descriptor().Fields()
	for i := range groups.Len() {
		fields := groups.Get(i).Message().Fields()
		for j := range fields.Len() {
			if m := fields.Get(j).Message(); m != nil {
				out[m.FullName()] = place{groups.Get(i), fields.Get(j)}
			}
		}
	}
	return out
})

// valuesOf returns the values in a Config, with their keys. root is the field of the request
// that holds it. If remove is set they are removals.
func (s *service) valuesOf(root string, c *configurator.Config, remove bool) (out []orchestrator.Declared, err error) {
	wrong := mistakes{effect: unchanged}
	add := func(v protoreflect.Message, path func() string) {
		d, err := s.declaredMessage(v.Interface(), remove)
		if err != nil {
			wrong.add(root+"."+path(), err)
			return
		}
		out = append(out, d)
	}
	c.ProtoReflect().Range(func(group protoreflect.FieldDescriptor, in protoreflect.Value) bool {
		in.Message().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			path := string(group.Name()) + "." + string(field.Name())
			if !field.IsList() {
				add(v.Message(), func() string { return path })
				return true
			}
			for i := range v.List().Len() {
				add(v.List().Get(i).Message(), func() string { return fmt.Sprintf("%s[%d]", path, i) })
			}
			return true
		})
		return true
	})
	return out, wrong.err()
}

// declaredMessage converts one message of the configurator to a declaration. With remove
// only its key counts.
func (s *service) declaredMessage(v proto.Message, remove bool) (d orchestrator.Declared, err error) {
	model, ok := s.models().ForMessage(v)
	if !ok {
		return d, fmt.Errorf("%w of %s", models.ErrNoModel, v.ProtoReflect().Descriptor().FullName())
	}
	if d.Key, err = model.Key(v); err != nil || remove {
		return d, err
	}
	d.Message = v
	return d, models.CheckSecrets(v)
}

// A builder collects values into a Config.
type builder struct{ config *configurator.Config }

// add adds a value. A value without a place is left out.
func (b *builder) add(v proto.Message) {
	at, ok := places()[v.ProtoReflect().Descriptor().FullName()]
	if !ok {
		return
	}
	group := b.config.ProtoReflect().Mutable(at.group).Message()
	if at.field.IsList() {
		group.Mutable(at.field).List().Append(protoreflect.ValueOfMessage(v.ProtoReflect()))
	} else {
		group.Set(at.field, protoreflect.ValueOfMessage(v.ProtoReflect()))
	}
}

// newBuilder returns a builder of a Config with all groups: clients read them without a
// check. A group without values is an empty message, not nil.
func newBuilder() *builder {
	b := &builder{&configurator.Config{}}
	groups := b.config.ProtoReflect().Descriptor().Fields()
	for i := range groups.Len() {
		b.config.ProtoReflect().Mutable(groups.Get(i))
	}
	return b
}
