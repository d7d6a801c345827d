package filedb

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Whatever a file holds, each entry is a value under a key or an error that names
// the place, and nothing is lost without a problem.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"data: [{key: config/a, value: {n: 1}}]",
		`{"data": [{"key": "/vnf-agent/vpp1/config/a", "value": null}, {"vlaue": 1}, 7]}`,
		"linuxConfig:\n  interfaces:\n  - {name: a, type: VETH}\n  - {name: b, tpe: VETH}\n---\nvppConfg: {}",
		"", "# nothing", "- a", "\xff", "data: {}",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		path := "/conf/a.yaml"
		if asJSON {
			path = "/conf/a.json"
		}
		c, err := parse(path, data, "/vnf-agent/vpp1/")
		if err != nil {
			if c != nil || !strings.HasPrefix(err.Error(), path+":") {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		for _, e := range c.entries {
			if !strings.HasPrefix(e.key, "/vnf-agent/") || !strings.HasPrefix(e.origin, path+":") {
				t.Fatalf("%+v", e)
			}
			if (e.err == nil) != json.Valid(e.value) || e.err != nil && !strings.HasPrefix(e.err.Error(), path+":") {
				t.Fatalf("%s: %q, %v", e.key, e.value, e.err)
			}
		}
		for _, p := range c.problems {
			if !strings.HasPrefix(p.Error(), path+":") {
				t.Fatalf("a problem without a place: %v", p)
			}
		}
		if c.blank && len(bytes.TrimSpace(data)) == 0 != (len(c.problems) == 1) {
			t.Fatalf("%q: %v", data, c.problems)
		}
	})
}
