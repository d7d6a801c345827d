package rest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
)

// Whatever is read, an item has a value in JSON, or says why not and where.
func FuzzParse(f *testing.F) {
	f.Add([]byte(planned))
	f.Add([]byte(`[{"key": "config/a", "value": {"x": 1}}, {"key": "b", "value": null}]`))
	f.Add([]byte("data: [{key: a, value: *x}, 1, {}]\nlinuxConfig: {routes: 1}\n---\n- {key: [a]}\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := parse(context.Background(), structured.For(models.BuiltIn()), body)
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

// TestParseEndsWithItsRequest: a request that is gone costs no more time.
func TestParseEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if items, err := parse(ctx, structured.For(models.BuiltIn()), []byte(planned)); !errors.Is(err, context.Canceled) || items != nil {
		t.Errorf("%d items, %v", len(items), err)
	}
}
