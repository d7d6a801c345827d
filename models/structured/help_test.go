package structured_test

import (
	"encoding/json"
	"slices"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

type reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

func jsonOf(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// sameItems fails unless text holds the same values, in any order.
func sameItems(t reporter, want []structured.Item, text []byte) {
	t.Helper()
	got, errs := structured.For(models.BuiltIn()).Parse(text, document.YAML)
	if len(errs) > 0 {
		t.Fatalf("%v in\n%s", errs, text)
	}
	if a, b := show(want), show(got); !slices.Equal(a, b) {
		t.Fatalf("wrote %q\nas\n%s\nread %q", a, text, b)
	}
}

// show lists models with their values, fields in order.
func show(items []structured.Item) []string {
	var out []string
	for _, it := range items {
		var v any
		if err := json.Unmarshal(it.Value, &v); err != nil {
			panic(err)
		}
		out = append(out, it.Model.Name()+" "+string(jsonOf(v)))
	}
	slices.Sort(out)
	return out
}
