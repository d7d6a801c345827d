package export

import (
	"context"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/northbound/rest/internal/body"
)

// TestPairs reads a list of pairs beside a group, and each alone.
func TestPairs(t *testing.T) {
	list, err := listOf([]pair{
		{"config/mine/v1/thing/a", []byte(`{"name":"a","number":"007","text":"no # yes: x","many":[1,2.5,true,null],"sub":{"x":"2020-01-01"}}`)},
		{"config/mine/v1/thing/0x1: #", []byte(`{}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	const groups = "linuxConfig:\n  interfaces:\n    - name: veth1\n"
	for text, want := range map[string]int{joined(groups, list): 3, joined("", list): 2, joined(groups, ""): 1, joined("", ""): 0} {
		items, _, err := body.Of([]byte(text)).Items(context.Background(), structured.For(models.BuiltIn()))
		if err != nil || len(items) != want {
			t.Errorf("%d values (%v); expected %d:\n%s", len(items), err, want, text)
			continue
		}
		if want < 2 {
			continue
		}
		items = items[want-2:]
		if items[0].Key != "config/mine/v1/thing/a" || items[1].Key != "config/mine/v1/thing/0x1: #" || items[0].Err != nil || items[1].Err != nil ||
			string(items[0].Value) != `{"name":"a","number":"007","text":"no # yes: x","many":[1,2.5,true,null],"sub":{"x":"2020-01-01"}}` {
			t.Errorf("read again: %+v, %s", items, items[0].Value)
		}
	}
	if _, err := listOf([]pair{{"a", []byte("{")}}); err == nil {
		t.Error("half a value is written")
	}
}
