package nearest

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

func TestWord(t *testing.T) {
	words := []string{"name", "type", "ip_addresses", "host_if_name", "mtu"}
	for given, want := range map[string]string{
		"ipAdresses":              "ip_addresses",
		"IP-Addresses":            "ip_addresses",
		"hostifname":              "host_if_name",
		"nam":                     "name",
		"host_if":                 "host_if_name",
		"ho":                      "",
		"mut":                     "",
		"colour":                  "",
		"":                        "",
		strings.Repeat("mtu", 99): "",
	} {
		if got := Word(given, words); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestDistanceIsAMetric(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 8, -1)
	draw.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if distance(a, a) != 0 || distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) {
			t.Fatalf("%d %d %d", distance(a, b), distance(b, c), distance(a, c))
		}
		if a != b && distance(a, b) == 0 {
			t.Fatal("different words without distance")
		}
	})
}
