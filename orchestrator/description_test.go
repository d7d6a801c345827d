package orchestrator

import (
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// The transaction of a store has the revisions of its keys, and not the one that the store has reached meanwhile.
func TestDescriptionOfChange(t *testing.T) {
	for _, test := range []struct {
		revs []int64
		want string
	}{
		{nil, "etcd"},
		{[]int64{0, 0}, "etcd"},
		{[]int64{57}, "etcd, revision 57"},
		{[]int64{57, 0, 57}, "etcd, revision 57"},
		{[]int64{57, 55, 56}, "etcd, revisions 55 to 57"},
	} {
		c := kvdbsync.Change{Source: "etcd", Rev: 99}
		for _, rev := range test.revs {
			c.Events = append(c.Events, kvdbsync.Event{Rev: rev})
		}
		if got := descriptionOf(c); got != test.want {
			t.Errorf("of %v it is %q, want %q", test.revs, got, test.want)
		}
	}
}
