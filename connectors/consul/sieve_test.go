package consul

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/keyplane/keyplane/kvdbsync"
)

var small = kvdbsync.Bounds{Value: 30, Page: 100, Listing: 100_000}

func sieved(in io.Reader) (string, error) {
	got, err := io.ReadAll(newSieve(in, small))
	return string(got), err
}

func TestSieve(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"Key":"a","Value":"MQ=="}]`:                          "",
		`["\"", "\\", "\\\"a\"", "\u00e4"]`:                     "",
		"[\n" + strings.Repeat(`{"Key":"k","Value":null},`, 99): "",
		`["` + strings.Repeat("x", 40) + `"]`:                   "",
		`["` + strings.Repeat("x", 50) + `",1]`:                 `["` + strings.Repeat("x", 40) + `!50",1]`,
		`["` + strings.Repeat("x", 100_000) + `",1]`:            `["` + strings.Repeat("x", 40) + `!100000",1]`,
		`["cut`: "",
	} {
		if want == "" {
			want = text
		}
		for _, in := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			if got, err := sieved(in); got != want || err != nil {
				t.Errorf("%.60q: %.100q, %v", text, got, err)
			}
		}
	}
}

// endless says something again and again.
type endless string

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

func TestSieveEndsWhatHasNoEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   io.Reader
		want error
	}{
		"pairs":      {io.MultiReader(strings.NewReader("["), endless(`{"Key":"k","Value":"MQ=="},`)), kvdbsync.ErrTooMuch},
		"fields":     {io.MultiReader(strings.NewReader("[{"), endless(`"Key":"k",`)), kvdbsync.ErrTooMuch},
		"space":      {io.MultiReader(strings.NewReader("["), endless(" ")), kvdbsync.ErrTooMuch},
		"the end":    {io.MultiReader(strings.NewReader("[]"), endless("\n")), kvdbsync.ErrTooMuch},
		"a number":   {io.MultiReader(strings.NewReader(`[{"ModifyIndex":`), endless("1")), kvdbsync.ErrTooMuch},
		"nesting":    {endless("["), ErrNotConsul},
		"no opening": {endless("]]]]"), kvdbsync.ErrTooMuch},
	} {
		if _, err := sieved(test.in); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// FuzzAnswers has the connector read any answer to a listing.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`[{"Key":"a","ModifyIndex":8,"Value":"MQ=="},{"Key":"b/","Value":null}]`, `[]`, `{}`, `[{"Key":"a","ModifyIndex":18446744073709551615}]`,
		`[{"Key":"a","Value":"` + strings.Repeat("A", 100) + `"}]`, `[{"Value":"!99"}]`, `[{"Value":5}]`, `[null]`, `[{"Key":"\"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		read := func(in io.Reader) (events []kvdbsync.Event, err error) {
			_, cancel := context.WithCancelCause(t.Context())
			a := &answer{index: 9, body: io.NopCloser(in), end: cancel, bounds: small}
			var k known
			return k.differing(a, true, nil)
		}
		events, err := read(strings.NewReader(string(said)))
		slow, err2 := read(iotest.OneByteReader(strings.NewReader(string(said))))
		if (err == nil) != (err2 == nil) || err == nil && len(events) != len(slow) {
			t.Errorf("at once %d events, %v; byte by byte %d, %v", len(events), err, len(slow), err2)
		}
		if err != nil {
			return
		}
		for _, e := range events {
			if int64(len(e.Value)) > small.Value || e.Value == nil && e.Err == nil || e.Rev < 0 {
				t.Errorf("%+v", e)
			}
		}
		// A mistake in the part of a string that the sieve drops stays unnoticed.
		if passed, err := sieved(strings.NewReader(string(said))); err != nil || !json.Valid([]byte(passed)) {
			t.Errorf("%q was read: %v", said, err)
		}
	})
}
