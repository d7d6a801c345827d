// Package limits says which values a field of a model may have, in a form that both the validation
// and the descriptions of models use: the scheduler checks values against it, and agentctl shows
// it in model inspect and writes it into JSON schemas. So they cannot disagree.
//
//	l := limits.Of(fd)       // of one field: range, format, unit, default
//	l.Range()                // "10..65535"
//	err := limits.Check(v)   // a models.FieldError for each field outside of its limits
//
// A limit concerns one field alone. Rules about several fields (a gateway has the IP version of
// its network) are in the descriptors, and in the comments of the .proto files.
//
// Limits come from two places. The hints of the .proto files (ligato.ligato_options) say which
// kind of address a text has, and the range of a number. The table in fields.go has the other
// facts about the built-in models: hints have no notation for them, and clients of other programs
// read the hints. The table wins.
//
// A field that is not set is valid unless it is required: zero and empty text mean the default.
//
// The package keeps no state. Tests: package agent compares the limits of every field of the
// built-in models with the checks of the descriptors.
package limits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/proto/ligato"
)

// Limits are the facts about one field. The zero Limits allows each value of the field's type. For
// a list they concern each element, apart from Required.
type Limits struct {
	// Min and Max are the smallest and the largest number, both included. Max is 0 for a field
	// without a range.
	Min, Max int64
	// Not are numbers of an enumeration that are refused.
	Not []int64
	// PowerOfTwo and Step restrict numbers further; Step is 0 or a number that divides them.
	PowerOfTwo bool
	Step       int64
	// MaxBytes is the maximum length of a text in bytes. 0: no limit.
	MaxBytes int
	// Format of a text. Empty: any text.
	Format Format
	// Host reports that an address may have a prefix length, which is ignored with a warning.
	Host bool
	// Alloc reports that the text may be a reference to an allocated address, "alloc:...".
	Alloc bool
	// Required reports that the field must be set: not zero, not empty.
	Required bool
	// Unit of a number: "bytes", "seconds".
	Unit string
	// Default is the effect of a field that is not set, if that is a value: "1024".
	Default string
}

// Of returns the limits of a field.
func Of(fd protoreflect.FieldDescriptor) Limits {
	l := hinted(fd)
	if name, ours := strings.CutPrefix(string(fd.FullName()), "ligato."); ours {
		l = fields()[name].over(l)
	}
	if fd.Kind() == protoreflect.BoolKind && l.Default == "" && !fd.IsList() {
		l.Default = "false"
	}
	return l
}

// over returns l with the facts of hints that l lacks.
func (l Limits) over(hints Limits) Limits {
	if l.Max == 0 {
		l.Min, l.Max = hints.Min, hints.Max
	}
	l.Format = cmp.Or(l.Format, hints.Format)
	return l
}

// hinted returns the limits that the .proto file has for a field.
func hinted(fd protoreflect.FieldDescriptor) (l Limits) {
	hints, _ := proto.GetExtension(fd.Options(), ligato.E_LigatoOptions).(*ligato.LigatoOptions)
	l.Min, l.Max = hints.GetIntRange().GetMinimum(), int64(min(hints.GetIntRange().GetMaximum(), 1<<62))
	if hints.GetType() != ligato.LigatoOptions_UNSPECIFIED {
		l.Format = formatOf(hints.GetType())
	}
	return l
}

// Bounded reports whether a number has a range that is smaller than its type.
func (l Limits) Bounded() bool { return l.Max != 0 }

// Range describes the allowed values of a field in one line, without the name of its type:
// "0..255", "IPv4 address", "up to 63 bytes". It is empty if each value of the type is allowed.
// The names of an enumeration are separated by "|".
func Range(fd protoreflect.FieldDescriptor) string {
	if fd.Enum() != nil {
		return strings.Join(Names(fd), "|")
	}
	return Of(fd).String()
}

// String describes the limits of a number or a text, as in an error: "1..255". It is empty if there
// are none.
func (l Limits) String() string {
	var parts []string
	if l.Bounded() {
		parts = append(parts, fmt.Sprintf("%d..%d", l.Min, l.Max))
	}
	if l.PowerOfTwo {
		parts = append(parts, "a power of two")
	}
	if l.Step > 0 {
		parts = append(parts, fmt.Sprintf("a multiple of %d", l.Step))
	}
	if l.Format != "" {
		parts = append(parts, string(l.Format))
	}
	if l.Alloc {
		parts = append(parts, "or alloc:NETWORK/INTERFACE")
	}
	if l.MaxBytes > 0 {
		parts = append(parts, fmt.Sprintf("up to %d bytes", l.MaxBytes))
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), ", or", " or")
}

// Names returns the names of an enumeration that the field may have, in their order.
func Names(fd protoreflect.FieldDescriptor) (out []string) {
	l, values := Of(fd), fd.Enum().Values()
	for i := range values.Len() {
		if v := values.Get(i); !slices.Contains(l.Not, int64(v.Number())) {
			out = append(out, string(v.Name()))
		}
	}
	return out
}
