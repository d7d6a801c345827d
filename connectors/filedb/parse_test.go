package filedb

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// Whatever a file holds, each entry is a value under a key or an error that names
// the place, and nothing is lost without a problem.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"data: [{key: config/a, value: {n: 1}}]",
		`{"data": [{"key": "/vnf-agent/vpp1/config/a", "value": null}, {"vlaue": 1}, 7]}`,
		"linuxConfig:\n  interfaces:\n  - {name: a, type: VETH}\n  - {name: b, tpe: VETH}\n---\nvppConfg: {}",
		`{"data": [{"key": "config/a", "value": {"n": [1, {"m": "x"}], "b": true}}, {"key": "config/b", "value": -1.5e3}]}`,
		"", "# nothing", "- a", "\xff", "data: {}", "---", "# nothing\n---",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		path := "/conf/a.yaml"
		if asJSON {
			path = "/conf/a.json"
			sayTheSame(t, path, data)
		}
		c, err := parse(path, data, "/vnf-agent/vpp1/")
		if err != nil {
			if c != nil || !strings.HasPrefix(err.Error(), path+":") {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		for _, e := range c.entries {
			if !strings.HasPrefix(e.key, "/vnf-agent/") || e.path() != path {
				t.Fatalf("%+v", e)
			}
			if (e.err == nil) != json.Valid(e.value.Bytes()) || e.err != nil && !strings.HasPrefix(e.err.Error(), path+":") {
				t.Fatalf("%s: %q, %v", e.key, e.value.Bytes(), e.err)
			}
		}
		for _, p := range c.problems {
			if !strings.HasPrefix(p.Error(), path+":") {
				t.Fatalf("a problem without a place: %v", p)
			}
		}
		// Comments alone are no fault. An empty file is one, and so is a mark behind which a document is missing.
		if faulty := len(bytes.TrimSpace(data)) == 0 || c.unfinished != nil; c.blank && faulty != (len(c.problems) == 1) {
			t.Fatalf("%q: %v", data, c.problems)
		}
	})
}

// parse reads a file as a DB does.
func parse(path string, data []byte, root string) (*content, error) {
	db, err := New(Config{Paths: []string{"/conf"}}, root, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return db.parse(context.Background(), path, data)
}

// sayTheSame fails if the quick way says something, and not what the slow one does.
func sayTheSame(t *testing.T, path string, data []byte) (quickly bool) {
	t.Helper()
	const root = "/vnf-agent/vpp1/"
	got, quickly := quick(path, data, root)
	if !quickly {
		return false
	}
	want, err := parseSlowly(context.Background(), models.BuiltIn(), path, data, root, document.JSONText)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %+v\nwant %+v, %v", data, got, want, err)
	}
	return true
}

// An entry with a key that is too long is left out, in each form. The fault is short, and tells where.
func TestKeysThatAreTooLong(t *testing.T) {
	key := strings.Repeat("k", 1<<20)
	for path, text := range map[string]string{
		"a.json": `{"data":[{"key":"config/` + key + `","value":1},{"key":"config/b","value":1}]}`,
		"b.json": `{"data":[{"key":"config\/` + key + `","value":1},{"key":"config/b","value":1}]}`, // not the quick form
		"a.yaml": "data:\n- {key: config/b, value: 1}\n- {value: 1, key: config/" + key + "}\n",
	} {
		c, err := parse(path, []byte(text), "/vnf-agent/vpp1/")
		if err != nil || len(c.problems) != 1 || len(c.entries) != 1 || c.entries[0].key != "/vnf-agent/vpp1/config/b" || c.nameless {
			t.Fatalf("%s: %.1000v, %.1000v", path, c, err)
		}
		what := c.problems[0].Error()
		if !strings.HasPrefix(what, path+":") || !strings.HasSuffix(what, "k\"… has 1048599 bytes; expected at most 4096") || len(what) > 300 {
			t.Errorf("%s: %.1000s", path, what)
		}
	}
}

func TestQuickSaysWhatParseDoes(t *testing.T) {
	for text, want := range map[string]bool{
		`{"data":[{"key":"config/a","value":{"n":1}}]}`: true,
		"{\n \"data\": [\n  {\"key\": \"config/a\",\n   \"value\": { \"n\": [ 1,\n2 ] } },\n\n  {\"key\":\"/vnf-agent/vpp2/b\",\"value\":\"a b\"}\n ]\n}\n": true,
		`{"data":[{"key":"a","value":{"s":"ü𝄞 <&>/","f":1.50e+10,"big":18446744073709551615}}]}`:                                                            true,
		`{"data":[{"key":"a\u00fc\/","value":1}]}`: false,
		`{"data":[{"key":"a","value":[ ]},{"key":"b","value":"" } , {"key":"c","value":{}},{"key":"d","value":-1e9 }]}`: true,
		`{"data":[{"key":"a","value":1},]}`:                           false,
		`{"data":[{"key":"a","value":tru}]}`:                          false,
		`{"data":[{"key":"a","value":{"k}":"]","n":{"k}":null}}}]}`:   true,
		`{"data":[{"key":"a","value":{"s":"\u00fc"}}]}`:               false,
		`{"data":[{"key":"a","value":0},{"key":"a","value":false}]}`:  true,
		`{"data":[{"key":"a","value":{"n":1,"n":2}}]}`:                false,
		`{"data":[{"key":"a","value":{"m":[{"n":1,"o":{},"n":2}]}}]}`: false,
		`{"data":[{"key":"a","value":null}]}`:                         false,
		`{"data":[{"key":"","value":1}]}`:                             false,
		`{"data":[{"Key":"a","value":1}]}`:                            false,
		`{"data":[{"key":"a","value":1,"x":1}]}`:                      false,
		`{"data":[{"value":1,"key":"a"}]}`:                            false,
		`{"data":[{"key":"a","value":1}]} {}`:                         false,
		`{"data":[{"key":"a","value":1}],"linuxConfig":{}}`:           false,
		`{"data":[{"key":"a","value":1}`:                              false,
		`{"data":[]}`:                                                 false,
		"":                                                            false,
		"{\"data\":[{\"key\":\"a\",\"value\":\"\xff\"}]}":             false,
		`{"data":[{"key":"a","value":` + strings.Repeat("[", 250) + strings.Repeat("]", 250) + `}]}`: false,
		`{"data":[{"key":"a","value":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}]}`:   true,
	} {
		if got := sayTheSame(t, "a.json", []byte(text)); got != want {
			t.Errorf("%s: quick says something: %v, want %v", text, got, want)
		}
	}
}
