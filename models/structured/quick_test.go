package structured_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models/structured"
)

// IsQuick accepts what Quick accepts. It copies nothing, so it takes no memory for each value.
func TestIsQuick(t *testing.T) {
	many := `{"data":[` + strings.TrimSuffix(strings.Repeat(`{"key":"a","value":{"name": "x", "l": [1, 2]}},`, 1000), ",") + `]}`
	for text, want := range map[string]bool{
		many:                                      true,
		`{"data":[{"key":"a","value":{}}]}`:       true,
		`{"data":[{"key":"a","value":null}]}`:     false,
		`{"data":[{"key":"","value":{}}]}`:        false,
		`{"data":[{"key":"a","value":{}}]`:        false,
		`{"data":[{"key":"a","value":{}}]} x`:     false,
		`{"data":[{"key":"a","value":"\u0041"}]}`: false,
		`{"data":[{"key":"a","value":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}]}`: false,
		`{"data":[]}`: false,
		``:            false,
	} {
		quick := structured.Quick([]byte(text), func(structured.Item) {})
		if is := structured.IsQuick([]byte(text)); is != want || quick != want {
			t.Errorf("%.60s: Quick says %v and IsQuick %v, want %v", text, quick, is, want)
		}
	}
	data := []byte(many)
	if allocs := testing.AllocsPerRun(10, func() { structured.IsQuick(data) }); allocs > 100 {
		t.Errorf("it allocates %v times for 1000 values", allocs)
	}
}
