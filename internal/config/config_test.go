package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/internal/config"
)

type sample struct {
	Endpoints []string        `yaml:"endpoints"`
	Timeout   time.Duration   `yaml:"dial-timeout"`
	Waits     []time.Duration `yaml:"waits"`
	TTL       int             `yaml:"session-ttl"`
	Port      uint16          `yaml:"port"`
	Insecure  bool            `yaml:"insecure-transport"`
	Password  string          `yaml:"password"`
	TLS       tls             `yaml:"tls"`
	Users     []user          `yaml:"users"`
	Ranks     map[string]int  `yaml:"ranks"`
	Mode      mode            `yaml:"mode"`
	Plain     string
	Hidden    string `yaml:"-"`
	private   string
}

type tls struct {
	CertFile string `yaml:"cert-file"`
}

type user struct {
	Name string `yaml:"name"`
}

type mode int

func (m *mode) UnmarshalYAML(n *yaml.Node) error {
	if n.Value != "fast" {
		return fmt.Errorf("mode %q: expected fast", n.Value)
	}
	*m = 1
	return nil
}

func TestParse(t *testing.T) {
	const file = `
endpoints: [a:1, b:2]
dial-timeout: 1m30s
waits: [1s, 2000]
session-ttl: 5
port: 65535
insecure-transport: true
password: 12345
tls: {cert-file: c.pem}
users:
- name: one
- name: two
ranks: {a: 1, b: 2}
mode: fast
plain: text
`
	got := sample{TTL: 1, private: "kept"}
	unknown, err := config.Parse("x.conf", []byte(file), &got)
	want := sample{
		Endpoints: []string{"a:1", "b:2"}, Timeout: 90 * time.Second, Waits: []time.Duration{time.Second, 2000},
		TTL: 5, Port: 65535, Insecure: true, Password: "12345", TLS: tls{"c.pem"},
		Users: []user{{"one"}, {"two"}}, Ranks: map[string]int{"a": 1, "b": 2}, Mode: 1, Plain: "text", private: "kept",
	}
	if err != nil || unknown != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, unknown %v, error %v", got, unknown, err)
	}
}

func TestWhatIsNotSaidStays(t *testing.T) {
	for _, file := range []string{"", "\n# nothing\n", "---\n", "session-ttl:\ntls:\n", "password: x"} {
		got := sample{TTL: 7, TLS: tls{"c.pem"}, Password: "x"}
		unknown, err := config.Parse("x.conf", []byte(file), &got)
		if err != nil || unknown != nil || got.TTL != 7 || got.TLS.CertFile != "c.pem" || got.Password != "x" {
			t.Errorf("%q: got %+v, unknown %v, error %v", file, got, unknown, err)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"duration":       {"\ndial-timeout: soon", `x.conf:2: dial-timeout: "soon": expected a duration, such as "3s" or "500ms"`},
		"number":         {"session-ttl: 1.5", `x.conf:1: session-ttl: "1.5": expected a whole number`},
		"too large":      {"port: 65536", `x.conf:1: port: "65536": expected a whole number, not negative`},
		"bool":           {"insecure-transport: 1", `x.conf:1: insecure-transport: "1": expected true or false`},
		"list":           {"endpoints: a:1", `x.conf:1: endpoints: "a:1": expected a list, each entry text`},
		"list entry":     {"waits:\n- 1s\n- never", `x.conf:3: waits[1]: "never": expected a duration, such as "3s" or "500ms"`},
		"text":           {"password: [a]", `x.conf:1: password: a list: expected text`},
		"structure":      {"tls: yes", `x.conf:1: tls: "yes": expected keys with values, such as cert-file`},
		"deep":           {"users:\n- name: {}", `x.conf:2: users[0].name: keys with values: expected text`},
		"map":            {"ranks: [a]", `x.conf:1: ranks: a list: expected keys, each with a whole number`},
		"map entry":      {"ranks:\n  a: 1\n  b: 1.5", `x.conf:3: ranks.b: "1.5": expected a whole number`},
		"own type":       {"mode: slow", `x.conf:1: mode: mode "slow": expected fast`},
		"no keys":        {"just text", `x.conf:1: "just text": expected keys with values, such as dial-timeout, endpoints`},
		"twice":          {"port: 1\nport: 2", `x.conf:2: port is on line 1 already`},
		"twice in a map": {"ranks:\n  a: 1\n  a: 2", `x.conf:3: ranks.a is on line 2 already`},
		"all of them":    {"port: a\nsession-ttl: b", "x.conf:1: port: \"a\": expected a whole number, not negative\nx.conf:2: session-ttl: \"b\": expected a whole number"},
		"syntax":         {"a: 1\nb: [", `x.conf:2: `},
		"two documents":  {"port: 1\n---\nport: 2", `x.conf:2: a second document: expected one only`},
		"tab":            {"tls:\n\tcert-file: x", `x.conf:2: found character that cannot start any token (indent with spaces, not with tabs; `},
		"second key":     {"# a\n port: 1\nsession-ttl: 2", `x.conf:3: did not find expected <document start> (fields of one level begin in the same column)`},
		"indentation":    {"# a\nport: 1\ntls:\n    cert-file: x\n  key-file: y\nplain: z", `x.conf:5: did not find expected key while parsing a block mapping that begins in line 2`},
		"binary":         {"\x00\x01\x02", `x.conf:1: control characters are not allowed`},
		"not UTF-8":      {"password: \xff", `x.conf:1: invalid`},
		"long is cut":    {"session-ttl: " + strings.Repeat("x", 100), `"` + strings.Repeat("x", 60) + `…": expected`},
		"alias to wrong": {"password: &p [a]\nplain: *p", `x.conf:1: plain: a list: expected text`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("x.conf", []byte(test.file), new(sample))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestUnknownKeys(t *testing.T) {
	const file = "dail-timeout: 3s\ntls:\n  cert_file: x\nusers:\n- namme: a\nsomething-else: 1\nHidden: 1\nport: 80\n"
	var got sample
	unknown, err := config.Parse("x.conf", []byte(file), &got)
	if err != nil || got.Port != 80 {
		t.Fatalf("error %v, port %d", err, got.Port)
	}
	want := []string{
		"x.conf:1: unknown key dail-timeout (did you mean dial-timeout?)",
		"x.conf:3: unknown key tls.cert_file (did you mean cert-file?)",
		"x.conf:5: unknown key users[0].namme (did you mean name?)",
		"x.conf:6: unknown key something-else",
		"x.conf:7: unknown key Hidden",
	}
	for i, u := range unknown {
		if i >= len(want) || u.String() != want[i] {
			t.Errorf("got %s", u)
		}
	}
	if len(unknown) != len(want) {
		t.Errorf("%d unknown keys, want %d", len(unknown), len(want))
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	inDir := filepath.Join(dir, "etcd.conf")
	write(t, inDir)
	if path, ok := config.Find("etcd.conf", dir); !ok || path != inDir {
		t.Errorf("in the directory: %q, %v", path, ok)
	}
	if path, ok := config.Find(inDir, "/nowhere"); !ok || path != inDir {
		t.Errorf("as a path: %q, %v", path, ok)
	}
	write(t, "etcd.conf")
	if path, ok := config.Find("etcd.conf", dir); !ok || path != inDir {
		t.Errorf("the current directory was searched: %q, %v", path, ok)
	}
	if path, ok := config.Find("./etcd.conf", dir); !ok || path != "./etcd.conf" {
		t.Errorf("a path comes first: %q, %v", path, ok)
	}
	write(t, "redis.conf")
	for _, value := range []string{"", "none.conf", "redis.conf"} {
		if path, ok := config.Find(value, dir); ok {
			t.Errorf("%q: found %q", value, path)
		}
	}
}

func TestFolderWhereAFileIsExpected(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	folder := filepath.Join(dir, "etcd.conf")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path, ok := config.Find("etcd.conf", dir)
	if _, err := config.Load(path, new(sample)); !ok || err == nil || err.Error() != folder+": a folder: expected a file" {
		t.Errorf("found %q, %v; loading it: %v", path, ok, err)
	}
	if err := os.MkdirAll("stores/bolt.conf", 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "stores/bolt.conf")
	if err := os.Mkdir(filepath.Join(dir, "stores"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file)
	if path, ok := config.Find("stores/bolt.conf", dir); !ok || path != file {
		t.Errorf("a file counts more than a folder: %q, %v", path, ok)
	}
}

func TestLoad(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.conf"), new(sample)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	path := filepath.Join(t.TempDir(), "x.conf")
	write(t, path)
	var got sample
	if _, err := config.Load(path, &got); err != nil || got.Port != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("port: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "port: 1", "a: &a [*a]", "<<: {port: 1}", "? [a]\n: b", "users: [{name: x}, null]", "tls: *x", "{{", "%YAML 1.3"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		unknown, err := config.Parse("x.conf", data, new(sample))
		for _, u := range unknown {
			if u.Line < 1 {
				t.Errorf("no line in %v", u)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x.conf:") {
			t.Errorf("no file in %q", err)
		}
	})
}
