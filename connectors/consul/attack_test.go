package consul_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/kvdbsync"
)

var tightBounds = kvdbsync.Bounds{Value: 1 << 10, Page: 64 << 10, Listing: 1 << 20}

// A value that is too large is dropped while it is read; the others are read.
func TestValueThatIsTooLarge(t *testing.T) {
	t.Parallel()
	cfg, _ := fake(t,
		reached(7, map[string]pairAt{"a": {strings.Repeat("x", 10<<20), 7}, "b": {"1", 7}, "c": {strings.Repeat("x", 1025), 7}}),
		reached(8, map[string]pairAt{"a": {"1", 8}, "b": {strings.Repeat("x", 3000), 8}, "c": {strings.Repeat("x", 1025), 7}}))
	cfg.Bounds = tightBounds
	large := func(size int) string {
		return fmt.Sprintf("too large: the value has %d bytes; max-value-size allows 1024", size)
	}
	want := []map[string]string{
		{"a": large(10<<20 + 2), "b": "1", "c": large(1025)}, // of base64, the size is known to within two bytes
		{"a": "1", "b": large(3000)},
	}
	for i, b := range batches(t, cfg, 2) {
		got := map[string]string{}
		for _, e := range b.Events {
			key := strings.TrimPrefix(e.Key, root)
			if got[key] = string(e.Value); e.Err != nil {
				got[key] = e.Err.Error()
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("batch %d: %v\nwant %v", i, got, want[i])
		}
	}
}

// pairs are n pairs of a kilobyte in the form of Consul, with a comma behind each.
func pairs(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"Key":"k%06d","Value":%q},`, i, base64.StdEncoding.EncodeToString(make([]byte, 1000)))
	}
	return text.String()
}

// No answer ends the process, or has it hold more than the bounds allow. It ends the watch.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	index := func(index, body string) reply { return reply{status: 200, index: index, body: body} }
	for name, test := range map[string]struct {
		reply reply
		want  error
	}{
		"index beyond 63 bits":     {index("18446744073709551615", "[]"), consul.ErrNotConsul},
		"negative index":           {index("-1", "[]"), consul.ErrNotConsul},
		"key index beyond 63 bits": {index("8", `[{"Key":"k","ModifyIndex":18446744073709551615}]`), consul.ErrNotConsul},
		"nested":                   {index("8", strings.Repeat("[", 1_000_000)), consul.ErrNotConsul},
		"one pair for ever":        {index("8", "["+strings.Repeat(`{"Key":"k"},`, 300_000)), consul.ErrNotConsul},
		"keys out of order":        {index("8", `[{"Key":"b"},{"Key":"a"}]`), consul.ErrNotConsul},
		"a key that is not UTF-8":  {index("8", "["+strings.Repeat(`{"Key":"\ufffd"},`, 300_000)), kvdbsync.ErrTooMuch},
		"out of order around one":  {index("8", `[{"Key":"b"},{"Key":"\ufffd"},{"Key":"a"}]`), consul.ErrNotConsul},
		"space for ever":           {index("8", "["+strings.Repeat(" ", 300_000)), kvdbsync.ErrTooMuch},
		"too many keys":            {index("8", "["+pairs(2000)), kvdbsync.ErrTooMuch},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := fake(t, test.reply)
			cfg.Bounds = tightBounds
			if err := ended(t, connect(cfg), root); !errors.Is(err, test.want) {
				t.Errorf("ended with %v, want %v", err, test.want)
			}
		})
	}
}

// The answers to requests are bounded and checked, too.
func TestHostileAnswersToRequests(t *testing.T) {
	t.Parallel()
	say := ""
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-Index", "5")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(say))
	}))
	t.Cleanup(s.Close)
	client, err := consul.Dial(consul.Config{Address: s.URL, Bounds: tightBounds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	for _, text := range []string{
		`{"Errors":[{"OpIndex":7,"What":"x"}]}`, `{"Errors":[{"OpIndex":-1,"What":"x"}]}`, `{"Errors":[null]}`,
	} {
		say, status = text, http.StatusConflict
		err := client.Apply(t.Context(), []kvdbsync.Pair{{Key: root + "a", Value: []byte("1")}})
		if !errors.Is(err, consul.ErrNotConsul) || !strings.Contains(err.Error(), root+"a") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for code, text := range map[int]string{
		http.StatusInternalServerError: strings.Repeat("x", 1<<20),
		http.StatusConflict:            `{"Errors":[{"OpIndex":0,"What":"` + strings.Repeat("x", 60_000) + `"}]}`,
	} {
		say, status = text, code
		err := client.Apply(t.Context(), []kvdbsync.Pair{{Key: root + "a", Value: []byte("1")}})
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("the text of an error of megabytes with status %d is %.2100v", code, err)
		}
	}
	status = http.StatusOK
	for _, text := range []string{"null", "{}", "[", `"x"`} {
		say = text
		_ = client.Apply(t.Context(), []kvdbsync.Pair{{Key: root + "a", Value: []byte("1")}})
		_, _ = client.Get(t.Context(), root+"a")
	}
	say = `[null]`
	if value, err := client.Get(t.Context(), root+"a"); err == nil {
		t.Errorf("Get of a pair that is null: %q", value)
	}
	say = fmt.Sprintf(`[{"Key":"k","Value":%q}]`, base64.StdEncoding.EncodeToString(make([]byte, 100_000)))
	if _, err := client.Get(t.Context(), root+"a"); !errors.Is(err, kvdbsync.ErrTooMuch) {
		t.Errorf("Get of a large value: %v", err)
	}
	if _, err := client.List(t.Context(), root); !errors.Is(err, kvdbsync.ErrTooMuch) {
		t.Errorf("List of a large value: %v", err)
	}
	say = `[{"Key":"` + strings.Repeat("k", 4<<20)
	loose := tightBounds
	loose.Page, loose.Listing = 64<<20, 64<<20
	if one, err := consul.Dial(consul.Config{Address: s.URL, Bounds: loose}); err != nil {
		t.Fatal(err)
	} else if _, err := one.Get(t.Context(), root+"a"); !errors.Is(err, kvdbsync.ErrTooMuch) {
		t.Errorf("Get, answered with more than any value takes: %v", err)
	}
	say = `{}`
	if _, err := consul.New(consul.Config{Address: s.URL}, nil).Session(t.Context(), time.Minute); !errors.Is(err, consul.ErrNotConsul) {
		t.Errorf("a session without a name: %v", err)
	}
}

// Each folder is asked about once, whatever a server says that it contains.
func TestBesideAsksOnce(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) > 10 {
			w.WriteHeader(http.StatusGone)
			return
		}
		w.Header().Set("X-Consul-Index", "5")
		_, _ = w.Write([]byte(`["x/vpp/", "x/vpp/", "x/check/", "x/check/", "x/other"]`))
	}))
	t.Cleanup(s.Close)
	client, err := consul.Dial(consul.Config{Address: s.URL, Bounds: tightBounds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	names, err := client.Beside(t.Context(), "/x/", []string{"vpp/a", "check/b"})
	if n := requests.Load(); err != nil || n != 3 || !slices.Equal(names, []string{"other"}) {
		t.Errorf("%d requests, %q, %v; want 3, for the prefix and its two folders, and other", n, names, err)
	}
}
