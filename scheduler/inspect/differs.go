package inspect

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// Differs reports whether it is drift if actual stands where desired is declared under key: drift of the value itself, or of
// one that is derived from it. Both are messages of the descriptor of the key. It is pure, like Message.
func Differs(s *scheduler.Scheduler, key string, actual, desired proto.Message) bool {
	r := s.Inside().Registry
	d := r.Of(key)
	return d != nil && differ(r.Actual(d, key, actual), r.DeclaredWhole(d, key, desired))
}

// differ compares two values with all that is derived from them.
func differ(actual, desired *graph.Value) bool {
	if actual.Kind != desired.Kind || actual.Kind != nil && !actual.Kind.Equivalent(actual.Key, actual.Data, desired.Data) {
		return true
	}
	stands := map[string]*graph.Value{}
	for _, part := range actual.Derived() {
		stands[part.Key] = part
	}
	for _, part := range desired.Derived() {
		other, ok := stands[part.Key]
		if !ok || differ(other, part) {
			return true
		}
		delete(stands, part.Key)
	}
	return len(stands) > 0
}
