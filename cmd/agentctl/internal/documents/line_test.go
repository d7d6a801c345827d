package documents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// TestLineSaysTheSame compares what is said about lines of KEY JSON with what is said about documents of the same pairs: the
// texts are the same, and each field has its own column.
func TestLineSaysTheSame(t *testing.T) {
	const key = "config/linux/interfaces/v2/interface/é"
	for value, columns := range map[string][]int{
		`{"name":"other","type":"LOOPBACK"}`: {42},
		`{"name":"é", "mtu": "big"}`:         {54},
		`{"name":"é","type":"X"}`:            nil,
		`{"name":"é","typ":"DUMMY"}`:         nil,
		`{"name":`:                           nil,
		`[]`:                                 nil,
	} {
		text := "- {key: " + key + ", value: " + value + "}"
		var want, got []string
		for _, f := range documents.Of("x", []byte(text)).Check(models.BuiltIn()) {
			want = append(want, f.Text)
		}
		line := documents.Line{File: "keys.txt", Number: 3, Column: 41, Key: "/vnf-agent/vpp1/" + key, Short: key, Value: []byte(value)}
		var at []int
		for _, f := range line.Check(models.BuiltIn()) {
			got, at = append(got, f.Text), append(at, f.Column)
			if !strings.HasPrefix(f.String(), "keys.txt:3:") || f.Key != line.Key {
				t.Errorf("%s: %s", value, f)
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) || columns != nil && !slices.Equal(at, columns) {
			t.Errorf("%s: it says %q at %d; expected %q at %d", value, got, at, want, columns)
		}
	}
	line := documents.Line{File: "k", Number: 1, Column: 40, Key: key, Short: key, Value: []byte(`{"name":"é","type":"LOOPBACK"}`)}
	refused := line.Refused(wire.Invalid{Key: key, Error: `invalid value: name is "é"; expected ASCII`, Fields: []string{"name"}})
	if got := lines(refused); got != "k:1:41: "+key+`: name is "é"; expected ASCII` {
		t.Errorf("refused: %s", got)
	}
}
