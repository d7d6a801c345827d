package body

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
)

// planned has a list of keys and values, and groups.
const planned = `
linuxConfig:
  interfaces:
    - {name: if9, type: DUMMY}
    - {name: if4, type: DUMMY, mtu: 10000}
    - {name: if5, type: DUMY}
`

// FuzzParse checks that each item has a value in JSON, or an error and its line.
func FuzzParse(f *testing.F) {
	f.Add([]byte(planned))
	f.Add([]byte(`[{"key": "config/a", "value": {"x": 1}}, {"key": "b", "value": null}]`))
	f.Add([]byte("data: [{key: a, value: *x}, 1, {}]\nlinuxConfig: {routes: 1}\n---\n- {key: [a]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		items, _, err := parse(context.Background(), structured.For(models.BuiltIn()), text)
		if err != nil && items != nil {
			t.Fatal("both items and an error")
		}
		for _, it := range items {
			if it.Err == nil && it.Value != nil && !json.Valid(it.Value) {
				t.Errorf("%q is no JSON", it.Value)
			}
			if it.Err == nil && it.Key == "" {
				t.Error("neither a key nor an error")
			}
			if it.Line < 1 {
				t.Errorf("%+v has no line", it)
			}
		}
	})
}

// TestRead reads texts of any length in the memory that they need.
func TestRead(t *testing.T) {
	const most = 4 << 20
	for _, size := range []int{0, 1, beginning - 1, beginning, beginning + 1, most} {
		text := bytes.Repeat([]byte("k"), size)
		for _, length := range []int64{int64(size), -1} {
			got, err := Read(bytes.NewReader(text), length, most, func() error { return nil })
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes are announced as %d: %d are read, %v", size, length, len(got), err)
			}
			if cap(got) > max(most, 2*beginning)+bytes.MinRead {
				t.Errorf("%d bytes are announced as %d: they have room for %d", size, length, cap(got))
			}
		}
	}
	errBroken := errors.New("broken off")
	for _, size := range []int{1, beginning + 1} {
		sent := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(errBroken))
		if _, err := Read(sent, int64(2*size), most, func() error { return nil }); !errors.Is(err, errBroken) {
			t.Errorf("a text that is broken off after %d bytes: %v", size, err)
		}
	}
}

// TestParseEndsWithItsRequest: a request that is gone costs no more time.
func TestParseEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if items, _, err := parse(ctx, structured.For(models.BuiltIn()), []byte(planned)); !errors.Is(err, context.Canceled) || items != nil {
		t.Errorf("%d items, %v", len(items), err)
	}
}

// TestQuickBodies: bodies of programs are read without a tree of nodes, and mean the same.
func TestQuickBodies(t *testing.T) {
	form := structured.For(models.BuiltIn())
	for text, quickly := range map[string]bool{
		"{\"data\": [\n {\"key\": \"config/a\", \"value\": {\"x\": 1}},\n {\"key\": \"config/b\", \"value\": {}}\n]}": true,
		`{"data": [{"key": "config/a", "value": null}]}`:                                                              false,
		planned: false,
	} {
		if got := Of([]byte(text)).quick; got != quickly {
			t.Errorf("%s: it is quick: %v, want %v", text, got, quickly)
		}
		if !quickly {
			continue
		}
		want, _, err := parse(t.Context(), form, []byte(text))
		got, _, _ := Of([]byte(text)).Items(t.Context(), form)
		for i := range want {
			want[i].Column = 0 // no answer has it
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v, %v", got, want, err)
		}
	}
}
