package consul_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
)

// With AllowStale only the questions that wait for changes are stale. The answer of a server
// that lags behind is not taken: the leader is asked for all keys.
func TestStaleQuestions(t *testing.T) {
	lagging := reached(7, map[string]pairAt{"a": {"0", 7}})
	for _, stale := range []bool{false, true} {
		cfg, asked := fake(t,
			reached(8, map[string]pairAt{"a": {"1", 8}}),
			reached(9, map[string]pairAt{"a": {"2", 9}}),
			lagging,
			reached(9, map[string]pairAt{"a": {"2", 9}}),
		)
		cfg.AllowStale = stale
		var got []string
		for _, b := range batches(t, cfg, 3) {
			got = append(got, describe(b))
		}
		if want := []string{"a=1", "a=2", "a=2"}; !slices.Equal(got, want) {
			t.Errorf("stale %v: %q, want %q", stale, got, want)
		}
		for i, q := range asked() {
			waits := q.Has("index")
			if q.Has("stale") != (stale && waits) || q.Has("consistent") != !waits {
				t.Errorf("stale %v: question %d is %v", stale, i, q)
			}
		}
	}
}

// Reads by hand are consistent with AllowStale, too.
func TestStaleClient(t *testing.T) {
	cfg, asked := fake(t, reached(8, map[string]pairAt{"a": {"1", 8}}))
	cfg.AllowStale = true
	client, err := consul.Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if pairs, err := client.List(t.Context(), root); err != nil || len(pairs) != 1 {
		t.Errorf("%v, %v", pairs, err)
	}
	for _, q := range asked() {
		if q.Has("stale") || !q.Has("consistent") {
			t.Errorf("the question is %v", q)
		}
	}
}
