package kv

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
)

// A file of keys gives lines with a key and a value, or an error of readable lines.
func FuzzLines(f *testing.F) {
	f.Add([]byte("config/linux/l3/v2/route/10.0.0.0/8/a {}\n# remark\n\n  /vnf-agent/vpp1/config/x\t{\"a\": 1}  \n"))
	f.Add([]byte("key\n\x1b[2J value\n"))
	f.Add([]byte(" \u00a0{}\n\xff\xfe {}\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines, err := readLines(&session.Session{Streams: session.Streams{In: bytes.NewReader(text)}}, "-")
		if err != nil && strings.ContainsFunc(strings.ReplaceAll(err.Error(), "\n", ""), unicode.IsControl) {
			t.Errorf("unreadable: %q", err)
		}
		for _, l := range lines {
			if l.pair.Key == "" || strings.ContainsAny(l.pair.Key, " \t\n") || len(bytes.TrimSpace(l.pair.Value)) == 0 {
				t.Errorf("%q: %q %q", l.place, l.pair.Key, l.pair.Value)
			}
		}
	})
}
