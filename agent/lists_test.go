package agent

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/scheduler"
)

// shortList is the length of a short list. A long one is longTimes as long, and linear work on it
// takes that much longer.
const shortList = 1_000

// leastCost is assumed for a shorter time: the kernel measures in ticks of up to 4 ms.
const leastCost = 4 * time.Millisecond

// longTimes is greater for texts: they are cheap to compare, so only a very long list shows
// quadratic work.
func longTimes(list protoreflect.FieldDescriptor) int {
	if list.Message() == nil {
		return 24
	}
	return 8
}

// TestLongLists gives each list of each model very many elements: different ones, most of which are
// wrong, and then equal ones. A writer of values can do that, and whoever decodes, checks and derives
// must not take minutes.
func TestLongLists(t *testing.T) {
	s := describedScheduler(t)
	runtime.LockOSThread() // cpuTime is that of the thread
	defer runtime.UnlockOSThread()
	lists := 0
	for _, one := range allSamples(t) {
		m, number, key, v := one.model, one.number, one.key, one.value
		for _, path := range listsIn(v.ProtoReflect(), nil) {
			lists++
			cost := func(n int) time.Duration {
				long := proto.Clone(v)
				lengthen(long.ProtoReflect(), path, n)
				begun := cpuTime(t)
				_ = s.Validate(scheduler.KeyValue{Key: key, Value: long})
				return cpuTime(t) - begun
			}
			times := longTimes(path[len(path)-1])
			limit := func(short time.Duration) time.Duration {
				return 3 * time.Duration(times) * max(short, leastCost)
			}
			short, long := cost(shortList), cost(shortList*times)
			for try := 0; try < 2 && long > limit(short); try++ { // garbage of others may have been collected
				short, long = max(short, cost(shortList)), min(long, cost(shortList*times))
			}
			if long > limit(short) {
				t.Errorf("%s, sample %d: %d elements of %v take %v, and %d take %v", m.Name(), number, shortList, path, short, shortList*times, long)
			}
		}
	}
	if lists < 30 {
		t.Errorf("%d lists were lengthened; expected those of all models", lists)
	}
}

// cpuTime is that of this thread, so other programs do not count.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// A fieldPath leads from a message to a list. On the way, the first element of each list counts.
type fieldPath []protoreflect.FieldDescriptor

// String returns the names of the fields.
func (p fieldPath) String() (out string) {
	for _, field := range p {
		out += "." + string(field.Name())
	}
	return out
}

// listsIn returns the lists with elements in m and below.
func listsIn(m protoreflect.Message, at fieldPath) (out []fieldPath) {
	for field, v := range m.Range {
		path := slices.Concat(at, fieldPath{field})
		switch {
		case field.IsMap():
		case field.IsList():
			out = append(out, path)
			if field.Message() != nil {
				out = append(out, listsIn(v.List().Get(0).Message(), path)...)
			}
		case field.Message() != nil:
			out = append(out, listsIn(v.Message(), path)...)
		}
	}
	return out
}

// lengthen gives the list at a path n elements that are like the first one. The first half differs.
func lengthen(m protoreflect.Message, path fieldPath, n int) {
	field := path[0]
	if len(path) > 1 {
		next := m.Get(field)
		if field.IsList() {
			lengthen(next.List().Get(0).Message(), path[1:], n)
		} else {
			lengthen(next.Message(), path[1:], n)
		}
		return
	}
	list := m.Mutable(field).List()
	first := list.Get(0)
	list.Truncate(0)
	for i := range n {
		i = min(i, n/2)
		if field.Message() == nil {
			list.Append(varied(field, first, i))
			continue
		}
		element := proto.Clone(first.Message().Interface()).ProtoReflect()
		for inner, v := range element.Range {
			if !inner.IsList() && !inner.IsMap() && inner.Message() == nil {
				element.Set(inner, varied(inner, v, i))
			}
		}
		list.Append(protoreflect.ValueOfMessage(element))
	}
}

// varied returns a value like v that differs from those of other numbers, where its type has so
// many values.
func varied(field protoreflect.FieldDescriptor, v protoreflect.Value, i int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("%s%d", v.String(), i))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(i))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(i))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(i))
	default:
		return v
	}
}
