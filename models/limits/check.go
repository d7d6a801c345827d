package limits

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
)

// A Checker checks the values of one message type. It never changes.
type Checker struct{ fields []checked }

// A checked field has limits itself, or is a message with such fields.
type checked struct {
	fd     protoreflect.FieldDescriptor
	limits Limits
	must   bool     // be set; a member of a oneof need not
	below  *Checker // nil for a field without a message
}

// For returns the Checker of a message type. It takes as long as many checks: keep it.
func For(md protoreflect.MessageDescriptor) *Checker {
	return compile(md, map[protoreflect.FullName]*Checker{})
}

// Validation returns the check of a model for scheduler.Options.FieldChecks. Only the limits of the
// built-in models are enforced: programs that use the hints of their .proto files for forms alone
// may accept other values too.
func Validation(m *models.Model) func(proto.Message) error {
	if !models.BuiltIn().Has(m) {
		return func(proto.Message) error { return nil }
	}
	return For(m.New().ProtoReflect().Descriptor()).Check
}

// Check is For(...).Check for one value.
func Check(v proto.Message) error { return For(v.ProtoReflect().Descriptor()).Check(v) }

// compile returns the Checker of md. A message may contain itself, so each type is compiled once.
func compile(md protoreflect.MessageDescriptor, known map[protoreflect.FullName]*Checker) *Checker {
	if c := known[md.FullName()]; c != nil {
		return c
	}
	c := &Checker{}
	known[md.FullName()] = c
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		one := checked{fd: fd, limits: Of(fd)}
		one.must = one.limits.Required && fd.ContainingOneof() == nil
		if fd.Message() != nil && !fd.IsMap() {
			one.below = compile(fd.Message(), known)
		}
		if one.below != nil || one.must || fd.Enum() != nil || one.limits.String() != "" {
			c.fields = append(c.fields, one)
		}
	}
	return c
}

// Check returns a models.FieldError for each field of a value that is outside of its limits, with
// its path, or nil. It does not know rules about several fields.
func (c *Checker) Check(v proto.Message) error {
	var f models.Faults
	c.check(&f, "", v.ProtoReflect())
	return f.Err()
}

// check checks the fields of m, whose path ends with a dot unless it is empty. Paths are made only
// for messages below and for errors: most values have none.
func (c *Checker) check(f *models.Faults, path string, m protoreflect.Message) {
	for _, one := range c.fields {
		fd := one.fd
		switch {
		case f.Full():
			return
		case !m.Has(fd):
			if one.must {
				f.Add(path+string(fd.Name()), nil, "")
			}
		case fd.IsList():
			one.elements(f, path, m.Get(fd).List())
		case one.below != nil:
			one.below.check(f, path+string(fd.Name())+".", m.Get(fd).Message())
		case !fd.IsMap():
			one.scalar(f, func() string { return path + string(fd.Name()) }, m.Get(fd))
		}
	}
}

// elements checks the elements of a list.
func (one checked) elements(f *models.Faults, path string, list protoreflect.List) {
	for i := range list.Len() {
		if f.Full() {
			return
		}
		at := func() string { return fmt.Sprintf("%s%s[%d]", path, one.fd.Name(), i) }
		if one.below != nil {
			one.below.check(f, at()+".", list.Get(i).Message())
			continue
		}
		one.scalar(f, at, list.Get(i))
	}
}

// scalar checks the value of a field, or of an element, that is no message.
func (one checked) scalar(f *models.Faults, field func() string, v protoreflect.Value) {
	l, fd := one.limits, one.fd
	switch fd.Kind() {
	case protoreflect.EnumKind:
		value := fd.Enum().Values().ByNumber(v.Enum())
		switch {
		case value == nil:
			f.Add(field(), int32(v.Enum()), "one of %s", strings.Join(Names(fd), ", "))
		case slices.Contains(l.Not, int64(v.Enum())):
			f.Add(field(), string(value.Name()), "one of %s", strings.Join(Names(fd), ", "))
		}
	case protoreflect.StringKind:
		if !l.allowsText(v.String()) {
			f.Add(field(), shown(fd, v), "%s", l.expected())
		}
	default:
		if n, ok := whole(v); ok && !l.AllowsNumber(n) {
			f.Add(field(), shown(fd, v), "%s", l.expected())
		}
	}
}

// shown returns a value for an error: none for a secret.
func shown(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if options, _ := fd.Options().(*descriptorpb.FieldOptions); options.GetDebugRedact() {
		return nil
	}
	return v.Interface()
}

// expected describes the limits for an error.
func (l Limits) expected() string {
	out := l.String()
	switch {
	case l.Bounded():
		out = strings.Replace(out, "..", " to ", 1)
	case strings.HasPrefix(out, "IP"):
		out = "an " + out
	case l.Format == Network, l.Format == Subnet, l.Format == MAC, l.Format == HostName:
		out = "a " + out
	}
	if example := l.Format.Example(); example != "" {
		out += fmt.Sprintf(", such as %q", example)
	}
	return out
}

// whole returns a whole number of up to 63 bits.
func whole(v protoreflect.Value) (n int64, ok bool) {
	switch n := v.Interface().(type) {
	case uint32:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case uint64:
		return int64(n & (1<<63 - 1)), n < 1<<63
	}
	return 0, false
}

// AllowsNumber reports whether a number is within the limits. Zero always is, as it means that the
// field is not set.
func (l Limits) AllowsNumber(n int64) bool {
	switch {
	case n == 0:
		return true
	case l.Bounded() && (n < l.Min || n > l.Max):
		return false
	case l.PowerOfTwo && n&(n-1) != 0:
		return false
	}
	return l.Step == 0 || n%l.Step == 0
}

// allowsText reports whether a text is within the limits.
func (l Limits) allowsText(s string) bool {
	switch {
	case l.Alloc && strings.HasPrefix(s, "alloc:"):
		return true
	case l.MaxBytes > 0 && len(s) > l.MaxBytes:
		return false
	case l.Host && l.Format.Valid(withoutLength(s)):
		return true
	}
	return l.Format.Valid(s)
}

// withoutLength removes the prefix length of an address.
func withoutLength(s string) string {
	address, _, _ := strings.Cut(s, "/")
	if !IPOrNet.Valid(s) {
		return s
	}
	return address
}
