package ruletext

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for rule, want := range map[string]string{
		"":                                    "",
		" -s  10.0.0.1\t-j DROP ":             "-s|10.0.0.1|-j|DROP",
		`-m comment --comment "a b"`:          "-m|comment|--comment|a b",
		`--comment "a \"b\" \\ c" -j X`:       `--comment|a "b" \ c|-j|X`,
		`--comment ""`:                        "--comment|",
		`--log-prefix 'single' -j LOG`:        "--log-prefix|'single'|-j|LOG",
		`-m u32 --u32 "0x0&0xffff=0x1:0x100"`: "-m|u32|--u32|0x0&0xffff=0x1:0x100",
	} {
		got, err := Split(rule)
		if text := strings.Join(got, "|"); err != nil || text != want {
			t.Errorf("%s: %s, %v; want %s", rule, text, err, want)
		}
	}
}

// FuzzWords holds that a normal rule has the same words and is normal, and that no rule makes
// a second line.
func FuzzWords(f *testing.F) {
	f.Add(`-m comment --comment "a \"b" -j DROP`)
	f.Add("-s 10.0.0.1\n-j DROP")
	f.Fuzz(func(t *testing.T, rule string) {
		before, err := Split(rule)
		if err != nil {
			return
		}
		normal := Join(before)
		after, err := Split(normal)
		if err != nil || !slices.Equal(before, after) || Join(after) != normal || strings.ContainsAny(normal, "\n\r") {
			t.Errorf("%q is %q, normal %q: %q, %v", rule, before, normal, after, err)
		}
	})
}
