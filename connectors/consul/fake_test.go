package consul_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A reply is what a fake Consul answers to one question. Its zero value holds the
// answer back until the question is withdrawn.
type reply struct {
	status int
	index  string
	pairs  map[string]pairAt
	header map[string]string
	body   string // instead of pairs
	after  time.Duration
}

// A pairAt is a value and the index of its change.
type pairAt struct {
	value string
	index uint64
}

func reached(index uint64, pairs map[string]pairAt) reply {
	return reply{status: 200, index: fmt.Sprint(index), pairs: pairs}
}

// fake is a Consul that answers one question after the other as told, and keeps
// the questions.
func fake(t *testing.T, replies ...reply) (cfg consul.Config, asked func() []url.Values) {
	t.Helper()
	var questions []url.Values
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-turn
		n := len(questions)
		questions = append(questions, r.URL.Query())
		turn <- struct{}{}
		if n >= len(replies) || replies[n].status == 0 {
			<-r.Context().Done()
			return
		}
		replies[n].write(w, r)
	}))
	t.Cleanup(s.Close)
	return consul.Config{Address: s.URL, OperationTimeout: testkit.Patience}, func() []url.Values {
		<-turn
		defer func() { turn <- struct{}{} }()
		return slices.Clone(questions)
	}
}

func (r reply) write(w http.ResponseWriter, request *http.Request) {
	if r.after > 0 {
		select {
		case <-time.After(r.after): // what a server does, seen from outside
		case <-request.Context().Done():
		}
	}
	if r.index != "" {
		w.Header().Set("X-Consul-Index", r.index)
	}
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	if r.body != "" {
		_, _ = w.Write([]byte(r.body))
		return
	}
	all := []api.KVPair{}
	for _, key := range slices.Sorted(maps.Keys(r.pairs)) {
		p := r.pairs[key]
		all = append(all, api.KVPair{Key: strings.TrimPrefix(root, "/") + key, Value: []byte(p.value), ModifyIndex: p.index})
	}
	_ = json.NewEncoder(w).Encode(all)
}

// batches reads n batches of a watch of a fake Consul.
func batches(t *testing.T, cfg consul.Config, n int) (all []kvdbsync.Batch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	next, stop := iter.Pull2(connect(cfg).Watch(ctx, root))
	defer stop()
	for range n {
		b, err, ok := next()
		if err != nil || !ok {
			t.Fatalf("after %d batches: %v", len(all), err)
		}
		all = append(all, b)
	}
	return all
}

func describe(b kvdbsync.Batch) string {
	var parts []string
	for _, e := range b.Events {
		text := strings.TrimPrefix(e.Key, root) + "=" + string(e.Value)
		if e.Value == nil {
			text = strings.TrimPrefix(e.Key, root) + " gone"
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// The first question is consistent and does not wait; each other one waits for
// more than the last answer had.
func TestQuestions(t *testing.T) {
	t.Parallel()
	cfg, asked := fake(t, reached(7, map[string]pairAt{"a": {"1", 7}}), reached(9, map[string]pairAt{"a": {"2", 9}}))
	cfg.WaitTime, cfg.Datacenter, cfg.Namespace, cfg.Partition = 3*time.Minute, "dc2", "ns1", "part1"
	for i, b := range batches(t, cfg, 2) {
		if got, want := describe(b), fmt.Sprintf("a=%d", i+1); got != want || b.Synced != (i == 0) {
			t.Errorf("batch %d: %s, want %s; synced: %v", i, got, want, b.Synced)
		}
	}
	all := asked()
	first, second := all[0], all[1]
	if !first.Has("recurse") || !first.Has("consistent") || first.Has("index") || first.Has("wait") {
		t.Errorf("the first question is %v", first)
	}
	if !second.Has("recurse") || second.Has("consistent") || second.Get("index") != "7" || second.Get("wait") != "180000ms" {
		t.Errorf("the second question is %v", second)
	}
	for name, want := range map[string]string{"dc": "dc2", "ns": "ns1", "partition": "part1"} {
		if first.Get(name) != want || second.Get(name) != want {
			t.Errorf("%s: %q and %q, want %s", name, first.Get(name), second.Get(name), want)
		}
	}
}

// After the index went back everything is listed anew, and everything counts:
// the same index may stand for something else.
func TestIndexGoesBack(t *testing.T) {
	t.Parallel()
	before := map[string]pairAt{"same": {"1", 5}, "other": {"1", 6}, "gone": {"1", 9}}
	after := map[string]pairAt{"same": {"1", 5}, "other": {"2", 6}}
	cfg, asked := fake(t, reached(9, before), reached(6, after), reached(6, after), reached(7, map[string]pairAt{"same": {"2", 7}, "other": {"2", 6}}))
	all := batches(t, cfg, 3)
	for i, want := range []string{"gone=1, other=1, same=1", "gone gone, other=2, same=1", "same=2"} {
		if got := describe(all[i]); got != want {
			t.Errorf("batch %d: %s, want %s", i, got, want)
		}
	}
	if third := asked()[2]; !third.Has("consistent") || third.Has("index") {
		t.Errorf("the question after it is %v", third)
	}
}

// After an answer before its time with the index of the question, the watch looks for the present
// index: the server may have other data now.
func TestSameIndexBeforeTheWaitIsOver(t *testing.T) {
	t.Parallel()
	listed := reached(9, map[string]pairAt{"a": {"1", 9}})
	absent := reply{status: 404, index: "4"}
	names := reply{status: 200, index: "4", body: `["a"]`}
	cfg, asked := fake(t, listed, listed, absent, names, reached(4, map[string]pairAt{"a": {"0", 4}}))
	if got := describe(batches(t, cfg, 2)[1]); got != "a=0" {
		t.Errorf("after it came %s", got)
	}
	if last := asked()[4]; !last.Has("recurse") || last.Has("index") {
		t.Errorf("the question after it is %v", last)
	}
}

// An index of 0 would make every question come back at once.
func TestIndexZero(t *testing.T) {
	t.Parallel()
	cfg, asked := fake(t, reached(0, nil), reached(2, map[string]pairAt{"a": {"1", 2}}))
	if got := describe(batches(t, cfg, 2)[1]); got != "a=1" {
		t.Errorf("got %s", got)
	}
	if second := asked()[1]; second.Get("index") != "1" {
		t.Errorf("the second question is %v", second)
	}
}

// What is no answer of Consul ends the watch; none of it may look like an empty store.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	good := reached(7, map[string]pairAt{"a": {"1", 7}})
	tests := map[string]struct {
		reply reply
		is    error
		says  string
	}{
		"too many requests": {reply: reply{status: 429, body: "Your IP is issuing too many concurrent connections"}, says: "429"},
		"no leader":         {reply: reply{status: 500, body: "No cluster leader"}, says: "500 (No cluster leader)"},
		"not found by somebody else": {
			reply: reply{status: 404, body: "404 page not found"}, is: consul.ErrNotConsul},
		"a web page":          {reply: reply{status: 200, body: "<html>"}, is: consul.ErrNotConsul},
		"a page with index":   {reply: reply{status: 200, index: "8", body: "<html>"}, says: "invalid character '<'"},
		"an object":           {reply: reply{status: 200, index: "8", body: "{}"}, says: "expected a list of pairs"},
		"cut off":             {reply: reply{status: 200, index: "8", body: `[{"Key":"vnf-agent/vpp1/a","ModifyIndex":8,"Value":"MQ=="}`}, says: "EOF"},
		"a value not base64":  {reply: reply{status: 200, index: "8", body: `[{"Key":"vnf-agent/vpp1/a","ModifyIndex":8,"Value":"?"}]`}, says: "value of vnf-agent/vpp1/a"},
		"filtered":            {reply: reply{status: 404, index: "8", header: map[string]string{"X-Consul-Results-Filtered-By-ACLs": "true"}}, is: consul.ErrFiltered},
		"nothing for nobody":  {reply: reply{status: 404, index: "8", header: map[string]string{"X-Consul-Default-ACL-Policy": "deny"}}, is: consul.ErrFiltered},
		"index not a number":  {reply: reply{status: 200, index: "many", body: "[]"}, is: consul.ErrNotConsul},
		"answer after change": {reply: reply{status: 503}, says: "503"},
	}
	for name, test := range tests {
		for _, when := range [][]reply{{test.reply}, {good, test.reply}} {
			t.Run(fmt.Sprintf("%s, answer %d", name, len(when)), func(t *testing.T) {
				cfg, _ := fake(t, when...)
				var last error
				seen := 0
				for b, err := range connect(cfg).Watch(t.Context(), root) {
					seen += len(b.Events)
					last = err
				}
				if last == nil || test.is != nil && !errors.Is(last, test.is) || !strings.Contains(last.Error(), test.says) || !strings.Contains(last.Error(), root) {
					t.Errorf("ended with %v, want %v %s", last, test.is, test.says)
				}
				if want := len(when) - 1; seen != want {
					t.Errorf("%d events, want %d", seen, want)
				}
			})
		}
	}
}

// What stands in between may close the connection after each answer.
func TestConnectionForEachAnswer(t *testing.T) {
	t.Parallel()
	var replies []reply
	for i := range uint64(3) {
		r := reached(7+i, map[string]pairAt{"a": {fmt.Sprint(i), 7 + i}})
		r.header = map[string]string{"Connection": "close"}
		replies = append(replies, r)
	}
	cfg, _ := fake(t, replies...)
	if got := describe(batches(t, cfg, 3)[2]); got != "a=2" {
		t.Errorf("got %s", got)
	}
}

// A server that takes the question and never answers.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string][]reply{
		"to the listing": {{}},
		"to the waiting": {reached(7, nil), {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := fake(t, replies...)
			cfg.OperationTimeout, cfg.WaitTime = 10*time.Second, 320*time.Millisecond // the listing is in time on a busy machine
			err := ended(t, connect(cfg), root)
			want := "no answer within 10s"
			if len(replies) > 1 {
				want = "no answer within 10.34s" // the wait, a sixteenth of it, and the time for a request
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ended with %v, want %s", err, want)
			}
		})
	}
}

// An answer that comes in the sixteenth that Consul may add is in time.
func TestAnswerWithJitter(t *testing.T) {
	t.Parallel()
	late := reached(8, map[string]pairAt{"a": {"1", 8}})
	late.after = 850 * time.Millisecond
	cfg, _ := fake(t, reached(7, nil), late)
	cfg.OperationTimeout, cfg.WaitTime = testkit.Patience, 800*time.Millisecond
	if got := describe(batches(t, cfg, 2)[1]); got != "a=1" {
		t.Errorf("got %s", got)
	}
}
