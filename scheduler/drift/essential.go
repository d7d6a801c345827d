package drift

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// essential returns got with only those fields that make it differ from want. The other fields are
// taken from want: what the system has there fulfils it, such as a MAC address that nobody
// declared. equal is the equivalence of the descriptor. It returns got if no field differs alone.
func essential(got, want proto.Message, equal func(got proto.Message) bool) proto.Message {
	if got == nil || want == nil || got.ProtoReflect().Descriptor() != want.ProtoReflect().Descriptor() {
		return got
	}
	out := proto.Clone(got)
	trial := proto.Clone(want)
	trim(out.ProtoReflect(), trial.ProtoReflect(), want.ProtoReflect(), func() bool { return equal(trial) })
	if equal(out) {
		return got
	}
	return out
}

// trim replaces fields of out by those of want. trial equals want when it is called and when it
// returns; fulfils judges trial while it has one field of out.
func trim(out, trial, want protoreflect.Message, fulfils func() bool) {
	fields := out.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message() != nil && !f.IsList() && !f.IsMap() && out.Has(f) && want.Has(f) {
			trim(out.Mutable(f).Message(), trial.Mutable(f).Message(), want.Get(f).Message(), fulfils)
			continue
		}
		set(trial, out, f)
		if fulfils() {
			set(out, want, f)
		}
		restore(trial, want, f)
	}
}

// set gives a message a copy of the field of another one.
func set(into, from protoreflect.Message, f protoreflect.FieldDescriptor) {
	if !from.Has(f) {
		into.Clear(f)
		return
	}
	into.Set(f, proto.Clone(from.Interface()).ProtoReflect().Get(f))
}

// restore gives trial back the field of want. Another member of a oneof has cleared the one that
// want has.
func restore(trial, want protoreflect.Message, f protoreflect.FieldDescriptor) {
	set(trial, want, f)
	if of := f.ContainingOneof(); of != nil {
		if has := want.WhichOneof(of); has != nil {
			set(trial, want, has)
		}
	}
}
