package document_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models/structured/document"
)

func TestYAMLBecomesJSON(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"plain", "a: 1\nb: [x, true, null, 1.5]", `{"a":1,"b":["x",true,null,1.5]}`},
		{"numbers of other bases", "a: 0x1F\nb: 0o17\nc: 1_000\nd: -0x10\ne: 18446744073709551615", `{"a":31,"b":15,"c":1000,"d":-16,"e":18446744073709551615}`},
		{"floats that JSON writes otherwise", "a: .5\nb: +2\nc: 1e3", `{"a":0.5,"b":2,"c":1e3}`},
		{"what looks like a number or a date", "mac: 00:11:22:33:44:55\nip: 10.0.0.1/24\nday: 2026-01-02\nq: '12'", `{"mac":"00:11:22:33:44:55","ip":"10.0.0.1/24","day":"2026-01-02","q":"12"}`},
		{"text with signs", `a: "<é & \u00e9>"`, `{"a":"<é & é>"}`},
		{"alias", "a: &x {k: 1}\nb: *x", `{"a":{"k":1},"b":{"k":1}}`},
		{"merge key, own field first", "a: &x {k: 1, l: 2}\nb:\n  k: 9\n  <<: *x", `{"a":{"k":1,"l":2},"b":{"k":9,"l":2}}`},
		{"merge of a list", "x: &x {k: 1}\ny: &y {k: 2, l: 3}\nz:\n  <<: [*x, *y]", `{"x":{"k":1},"y":{"k":2,"l":3},"z":{"k":1,"l":3}}`},
		{"JSON is YAML", `{"a": {"b": ["c"]}}`, `{"a":{"b":["c"]}}`},
		{"byte order mark", "\xef\xbb\xbfa: 1", `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes, err := document.Read([]byte(tt.yaml), document.YAML)
			if err != nil || len(nodes) != 1 {
				t.Fatalf("Read: %d documents, %v", len(nodes), err)
			}
			if got, err := document.JSON(nodes[0]); string(got) != tt.want || err != nil {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestWhatIsWrongAndWhere(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for _, c := range "bcdefgh" {
		p := string(c - 1)
		bomb += strings.ReplaceAll(string(c)+": &"+string(c)+" [P,P,P,P,P,P,P,P,P,P]\n", "P", "*"+p)
	}
	mergeBomb := "a: &a {k: 1}\n"
	for _, c := range "bcdefgh" {
		p := string(c - 1)
		mergeBomb += strings.ReplaceAll(string(c)+": &"+string(c)+" {<<: [P,P,P,P,P,P,P,P,P,P]}\n", "P", "*"+p)
	}
	ten := strings.Repeat("- {a: 1}\n", 10)
	tests := []struct {
		name, text string
		format     document.Format
		want       string
	}{
		{"binary", "a: 1\nb: \xff\xfe", document.YAML, "2:4: not a text file: found byte 0xff, which is not UTF-8"},
		{"NUL", "a\x00b", document.YAML, "1:2: not a text file: found a NUL byte"},
		{"bracket left open", "a: [1, 2\nb: 3\n", document.YAML, "2:2: did not find expected ',' or ']' while parsing a flow sequence that begins in line 1"},
		{"tabs", "a:\n\tb: 1\n", document.YAML, "2:1: found character that cannot start any token (indent with spaces, not with tabs; quote values that begin with @, ` or %)"},
		{"unknown alias", "a: *b", document.YAML, "1:4: unknown anchor 'b' referenced"},
		{"unknown alias in a later document", ten + "---\n" + ten + "---\na: &x {k: 1}\nb: *y\n" + ten, document.YAML, "24:4: unknown anchor 'y' referenced"},
		{"alias with text behind it", ten + "- &x a\n- *x z\n" + ten, document.YAML, "12:6: did not find expected '-' indicator while parsing a block collection that begins in line 1"},
		{"indentation in a later document", "a: 1\n---\n" + ten + "   k: 1\n" + ten, document.YAML, "13:4: did not find expected '-' indicator while parsing a block collection that begins in line 3"},
		{"indentation of a field", "a:\n  b: 1\n  c: 1\n d: 2\n", document.YAML, "4:2: did not find expected key while parsing a block mapping that begins in line 1"},
		{"indentation below a value", "a: 1\n# a remark\n\nb: 2\n   c: 3\n", document.YAML, "5:5: mapping values are not allowed in this context"},
		{"no colon", "a: 1\nb\nc: 2\n", document.YAML, "2:1: could not find expected ':' while scanning a simple key"},
		{"quote left open", "a: 1\nb: \"x\n" + ten, document.YAML, "2:4: found unexpected end of stream while scanning a quoted scalar"},
		{"brace left open", "a: 1\nb: {c: 1\n\n\n", document.YAML, "2:4: did not find expected ',' or '}' while parsing a flow mapping"},
		{"other line breaks", "a: 1\r\nb: 2\r\nc: }\r\n", document.YAML, "3:4: did not find expected node content"},
		{"what only the first parser refuses", "- ? a\n  : b\n  : c\n", document.YAML, "2: did not find expected key"},
		{"field twice", "a:\n  b: 1\n  b: 2\n", document.YAML, `3:3: field "b" occurs twice, first in line 2`},
		{"field twice in JSON", "{\"a\": 1,\n \"a\": 2}", document.JSONText, `2:2: field "a" occurs twice, first in line 1`},
		{"infinite", "a: .inf", document.YAML, `1:4: found ".inf": expected a finite number`},
		{"no boolean", "a: !!bool maybe", document.YAML, `1:4: found "maybe": expected true or false`},
		{"a mapping for a name", "? {a: 1}\n: 2", document.YAML, "1:3: found a mapping: expected the name of a field"},
		{"growing aliases", bomb, document.YAML, "1:18: aliases make this document grow by more than 4194304 bytes"},
		{"growing merges", mergeBomb, document.YAML, "2:28: aliases make this document grow by more than 4194304 bytes"},
		{"alias of itself", "a: &a [*a]", document.YAML, "1:8: nested deeper than 200 levels"},
		{"deep", strings.Repeat("[", 300), document.JSONText, "1:201: nested deeper than 200 levels"},
		{"comma too many", "{\"a\": 1,\n}", document.JSONText, "2:1: not valid JSON: invalid character '}' looking for beginning of object key string"},
		{"no quotes", "{\"a\":\n  b}", document.JSONText, "2:3: not valid JSON: invalid character 'b' looking for beginning of value"},
		{"cut off", "{\"a\": [1,\n", document.JSONText, "2:1: not valid JSON: it ends too early"},
		{"two closing", "{}}", document.JSONText, "1:3: not valid JSON: invalid character '}' looking for beginning of value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := valuesOf(tt.text, tt.format)
			var place *document.Error
			if !errors.As(err, &place) || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestDocumentsThatHoldNothingAreLeftOut(t *testing.T) {
	for _, f := range []document.Format{document.YAML, document.JSONText} {
		for text, want := range map[string]int{"": 0, "\n": 0, "null": 0, "{}": 1} {
			if nodes, err := document.Read([]byte(text), f); len(nodes) != want || err != nil {
				t.Errorf("%q: %d documents, %v; want %d", text, len(nodes), err, want)
			}
		}
	}
	got, err := valuesOf("# one\n---\na: 1\n---\n# none\n---\nb: 2\n", document.YAML)
	if strings.Join(got, " ") != `{"a":1} {"b":2}` || err != nil {
		t.Errorf("several documents: %v, %v", got, err)
	}
}

func TestNodesKnowTheirPlacesInBothFormats(t *testing.T) {
	text := "{\"a\": [\n  1,\n  {\"b\": 2}]}"
	for _, f := range []document.Format{document.YAML, document.JSONText} {
		nodes, err := document.Read([]byte(text), f)
		if err != nil {
			t.Fatal(err)
		}
		fields, _ := document.Fields(nodes[0])
		list := fields[0].Value.Content
		if list[0].Line != 2 || list[0].Column != 3 || list[1].Line != 3 || list[1].Column != 3 {
			t.Errorf("format %d: %d:%d and %d:%d, want 2:3 and 3:3", f, list[0].Line, list[0].Column, list[1].Line, list[1].Column)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: 1", "{\"a\": [1, 2.5e3, \"x\"]}", "a: &x {k: 1}\nb:\n  <<: *x", "---\n---\n!!int x", "? [a]\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []document.Format{document.YAML, document.JSONText} {
			out, err := valuesOf(string(data), format)
			var place *document.Error
			if err != nil && (!errors.As(err, &place) || place.Line < 1) {
				t.Fatalf("an error without a place: %v", err)
			}
			for _, one := range out {
				if !json.Valid([]byte(one)) {
					t.Fatalf("%q became %s, which is not JSON", data, one)
				}
			}
			if format == document.JSONText && json.Valid(data) && err == nil && len(out) == 1 {
				sameJSON(t, data, []byte(out[0]))
			}
		}
	})
}

func valuesOf(text string, f document.Format) (out []string, err error) {
	nodes, err := document.Read([]byte(text), f)
	for _, n := range nodes {
		value, err := document.JSON(n)
		if err != nil {
			return out, err
		}
		out = append(out, string(value))
	}
	return out, err
}

func sameJSON(t *testing.T, a, b []byte) {
	t.Helper()
	canonical := func(data []byte) string {
		d := json.NewDecoder(strings.NewReader(string(data)))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	if canonical(a) != canonical(b) {
		t.Fatalf("%q became %q", a, b)
	}
}
