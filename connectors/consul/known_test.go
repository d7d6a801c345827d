package consul

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
)

func answerOf(t rapid.TB, index uint64, pairs api.KVPairs) *answer {
	t.Helper()
	text, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{index: index, body: io.NopCloser(strings.NewReader(string(text)))}
}

// However the store changes, and however its indexes go back, what is known of it
// after each answer is what the answer held.
func TestDiffering(t *testing.T) {
	t.Parallel()
	draw.Check(t, func(t *rapid.T) {
		store, seen := map[string]api.KVPair{}, map[string]string{}
		var k known
		index := uint64(1)
		for range rapid.IntRange(1, 10).Draw(t, "answers") {
			whole := rapid.Bool().Draw(t, "whole")
			if whole {
				index = 1
				clear(store) // which may fill it again at the same indexes
			}
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				key := "vnf-agent/" + rapid.SampledFrom([]string{"a", "ab", "abc", "b"}).Draw(t, "key")
				index++
				store[key] = api.KVPair{Key: key, ModifyIndex: index, Value: []byte(rapid.StringN(0, 3, 10).Draw(t, "value"))}
				if rapid.Bool().Draw(t, "gone") {
					delete(store, key)
				}
			}
			pairs := api.KVPairs{}
			for _, key := range slices.Sorted(maps.Keys(store)) {
				p := store[key]
				pairs = append(pairs, &p)
			}
			events, err := k.differing(answerOf(t, index, pairs), whole, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if e.Value == nil {
					delete(seen, e.Key)
				} else {
					seen[e.Key] = string(e.Value)
				}
			}
			want := map[string]string{}
			for key, p := range store {
				want["/"+key] = string(p.Value)
			}
			if !maps.Equal(seen, want) {
				t.Fatalf("known %v, the store has %v", seen, want)
			}
		}
	})
}

func TestNothingDiffersOnceSeen(t *testing.T) {
	t.Parallel()
	pairs := api.KVPairs{{Key: "a", ModifyIndex: 1, Value: []byte("1")}, {Key: "b", ModifyIndex: 2}}
	var k known
	for round, want := range []int{2, 0, 0} {
		events, err := k.differing(answerOf(t, 2, pairs), false, nil)
		if err != nil || len(events) != want {
			t.Errorf("answer %d: %d events, %v; want %d", round, len(events), err, want)
		}
	}
}

// A key that Consul no longer has was deleted, unless Consul's index went back meanwhile.
func TestDeletedOrAbsent(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		var k known
		if _, err := k.differing(answerOf(t, 9, api.KVPairs{{Key: "a", ModifyIndex: 1}, {Key: "b", ModifyIndex: 2}}), true, nil); err != nil {
			t.Fatal(err)
		}
		events, err := k.differing(answerOf(t, 10, api.KVPairs{{Key: "b", ModifyIndex: 2}}), whole, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone := slices.DeleteFunc(events, func(e kvdbsync.Event) bool { return e.Value != nil })
		if len(gone) != 1 || gone[0].Key != "/a" || gone[0].Absent != whole {
			t.Errorf("listed again: %v: %+v", whole, gone)
		}
	}
}

// A listing of many keys is read pair by pair, and its keys are kept once.
func BenchmarkUnchanged(b *testing.B) {
	const keys = 10_000
	var pairs api.KVPairs
	for i := range keys {
		pairs = append(pairs, &api.KVPair{Key: fmt.Sprintf("vnf-agent/vpp1/config/linux/l3/v2/route/10.%d.%d.0/24/veth1", i/256, i%256), ModifyIndex: uint64(i), Value: make([]byte, 120)})
	}
	text, err := json.Marshal(pairs)
	if err != nil {
		b.Fatal(err)
	}
	var k known
	b.ReportAllocs()
	for b.Loop() {
		events, err := k.differing(&answer{index: keys, body: io.NopCloser(strings.NewReader(string(text)))}, false, nil)
		if err != nil || len(events)%keys > 0 {
			b.Fatal(len(events), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/keys, "us/key")
}

// FuzzAnswer feeds what is no answer.
func FuzzAnswer(f *testing.F) {
	f.Add(`[{"Key":"a","ModifyIndex":1,"Value":"MQ=="},{"Key":"b/","Value":null}]`)
	f.Add(`[]`)
	f.Add(`null`)
	f.Add(`[{"Key":"a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var k known
		events, err := k.differing(&answer{body: io.NopCloser(strings.NewReader(text))}, true, nil)
		if err != nil {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(text), "[") {
			t.Errorf("%q was taken for a list", text)
		}
		for _, e := range events {
			if !strings.HasPrefix(e.Key, "/") || e.Value == nil {
				t.Errorf("%q came out of %q", e.Key, text)
			}
		}
	})
}

func TestReadErrorIsHandedOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	var k known
	body := io.MultiReader(strings.NewReader(`[{"Key":"a","ModifyIndex":1,"Value":"MQ=="},`), failing{broken})
	if _, err := k.differing(&answer{body: io.NopCloser(body)}, true, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
