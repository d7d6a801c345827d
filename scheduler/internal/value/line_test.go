package value

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
)

// many is a value with a list of texts, and one of messages.
func many(n int) []proto.Message {
	link := &interfaces.Interface{Name: "eth0", Enabled: true}
	rules := &acl.ACL{Name: "web"}
	for i := range n {
		link.IpAddresses = append(link.IpAddresses, fmt.Sprintf("10.%d.%d.%d/8", i>>16, i>>8&0xff, i&0xff))
		rules.Rules = append(rules.Rules, &acl.ACL_Rule{Action: acl.ACL_Rule_Action(i % 2)})
	}
	return []proto.Message{link, rules}
}

// TestLargeValueBeginsAsASmallOne: only the end of the text and its cost differ.
func TestLargeValueBeginsAsASmallOne(t *testing.T) {
	small, large := many(2000), many(100_000)
	for i := range large {
		begins, got := Line(small[i]), Line(large[i])
		end := fmt.Sprintf("… (a value of %d bytes) }", proto.Size(large[i]))
		if n := strings.LastIndex(got, "…"); got[n:] != end || !strings.HasPrefix(begins, got[:min(n, 10_000)]) || len(got) > maxValueText+100 {
			t.Errorf("%d bytes that begin with %.60q and end with %q; want the beginning of %.60q, and %q", len(got), got, got[n:], begins, end)
		}
		cost := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				Line(large[i])
			}
		}).AllocedBytesPerOp()
		if most := int64(1 << 20); cost > most {
			t.Errorf("a line of %d bytes takes %d bytes, want at most %d", len(got), cost, most)
		}
	}
}

func TestLine(t *testing.T) {
	for want, m := range map[string]proto.Message{
		"<NIL>":            nil,
		"<EMPTY>":          &interfaces.Interface{},
		`{ name: "eth0" }`: &interfaces.Interface{Name: "eth0"},
	} {
		if got := Line(m); strings.ReplaceAll(got, `name:"`, `name: "`) != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	long := &interfaces.Interface{Name: strings.Repeat("n", 1<<20)}
	if got := Line(long); len(got) > maxValueText+100 || !strings.HasSuffix(got, "… (a value of 1048580 bytes) }") {
		t.Errorf("%d bytes that end with %q", len(got), got[len(got)-40:])
	}
}
