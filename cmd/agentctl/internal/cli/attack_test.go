package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// attacks are texts that command a terminal, forge a line, or turn the order of text around.
func attacks() map[string]string {
	return map[string]string{
		"escape sequence": "\x1b]0;FORGED\x07\x1b[2J", "carriage return": "\rFORGED", "line feed": "\nFORGED", "one-byte control": "\u009bFORGED",
		"override": "\u202eFORGED", "isolate": "\u2066FORGED", "line separator": "\u2028FORGED", "paragraph separator": "\u2029FORGED",
	}
}

// hostile is an agent, or what pretends to be one, whose answers attack in each text.
func hostile(attack string) http.Handler {
	evil := func(what string) string { return what + attack }
	prefix := models.For[*interfaces.Interface]().Prefix()
	key := prefix + evil("if")
	status := wire.ValueStatus{Key: key, State: evil("FAILED"), Error: evil("error"), LastOperation: evil("CREATE"), Details: []string{evil("detail")}}
	record := wire.Record{
		Description: evil("description"), NotReadBack: []string{evil("unread")}, TxnType: evil("type"), Start: time.Now(),
		Executed: []wire.Operation{{Operation: evil("CREATE"), Key: key, NewState: evil("FAILED"), NewErrMsg: evil("error")}},
	}
	content, _ := json.Marshal(map[string]string{"name": evil("if")})
	answers := map[string]any{
		"/scheduler/status": []wire.BaseValueStatus{{Value: status, DerivedValues: []wire.ValueStatus{status}}},
		"/scheduler/values": browse.ValuePage{Total: 2, Values: []browse.ListedValue{{Key: key, State: evil("FAILED")}, {Key: key + "2", State: evil("FAILED")}}},
		"/scheduler/value": browse.ValueDetails{Value: browse.ListedValue{Key: key, State: evil("FAILED"), Error: evil("error"), LastOperation: evil("CREATE")},
			Desired: &wire.Message{ProtoMsgName: "x", ProtoMsgData: content}},
		"/scheduler/txn-history":       []wire.Record{record},
		"/scheduler/retry":             record,
		"/scheduler/downstream-resync": record,
		"/scheduler/explain":           wire.Explanation{Key: key, Text: evil("text"), Because: []wire.Explanation{{Text: evil("cause")}}},
		"/scheduler/plan":              wire.Plan{Operations: record.Executed, Invalid: []wire.Invalid{{Key: key, Line: 1, Error: evil("error")}}},
		"/scheduler/connections":       []wire.Connection{{Name: evil("name"), State: evil("LOST"), Error: evil("error"), Unknown: []wire.Unknown{{Descriptor: evil("kind"), Reason: evil("reason")}}}},
		"/drift":                       wire.Drift{Unknown: []wire.Unknown{{Descriptor: evil("kind"), Reason: evil("reason")}}, NotReadBack: []string{evil("unread")}},
		"/readiness": wire.AgentStatus{
			State: wire.StateOK, Plugins: []wire.PluginHealth{{Name: evil("name"), Error: evil("error")}}, Missing: []string{evil("missing")}, Unapplied: []string{evil("unapplied")},
		},
		"/info/version": wire.Version{App: evil("app"), Version: evil("version"), GoVersion: evil("go"), OS: evil("os")},
		"/vpp/info": wire.VPP{
			Socket: evil("socket"), Version: evil("version"), BuildDate: evil("date"), LastError: evil("error"), NoPlugins: evil("none"),
			Capabilities: []wire.Capability{{Feature: evil("feature"), Message: evil("message")}}, Plugins: []wire.Plugin{{Name: evil("name"), Version: evil("1"), Description: evil("d")}},
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "": // errors are asked for
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]string{"error": evil("refused")}
		case r.FormValue("format") == "text":
			_, _ = io.WriteString(w, strings.ReplaceAll(evil("text"), "\n", " ")) // the agent escapes line feeds
			return
		case r.URL.Path == "/sources" && r.FormValue("key")+r.FormValue("key-prefix") != "":
			answer = []wire.Declaration{{Key: key, Source: evil("source"), State: evil("state"), Error: evil("error")}}
		case r.URL.Path == "/sources":
			answer = []wire.Source{{Name: evil("source"), State: evil("state"), Error: evil("error"), Problems: 2, Faults: []string{evil("fault")}}}
		case r.URL.Path == "/scheduler/dump" && r.FormValue("key-prefix") == "":
			answer = wire.DumpIndex{KeyPrefixes: []string{prefix}}
		case r.URL.Path == "/scheduler/dump":
			value, _ := json.Marshal(map[string]string{"name": evil("if")})
			answer = []wire.DumpEntry{{Key: key, Value: &wire.Message{ProtoMsgName: "x", ProtoMsgData: value}}}
		case !known:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, evil("no such path"))
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// TestTextIsPrintable gives each command that prints text answers that attack.
func TestTextIsPrintable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, attack := range attacks() {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(hostile(attack))
			defer server.Close()
			at, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{
				{"values"}, {"values", "--watch"}, {"values", "--sources"}, {"values", "retry", "if" + attack}, {"values", "retry", "i"}, {"sources"}, {"sources", "if" + attack}, {"dump", "all"},
				{"config", "history"}, {"config", "history", "--details"}, {"config", "history", "-f", "log"},
				{"config", "history", "if" + attack}, {"config", "history", "if" + attack, "-f", "log"},
				{"get", "if" + attack}, {"get", "linux.interfaces.interface"}, {"get", "if" + attack, "-o", "wide"},
				{"explain", "k" + attack}, {"explain", "if" + attack}, {"plan", file}, {"plan", file, "-f", "log"}, {"vpp", "info"}, {"status"}, {"connections"}, {"drift"},
				{"config", "resync"}, {"config", "history", "-f", "json"}, {"status", "-f", "json"},
			} {
				for _, refused := range [][]string{nil, {"--http-basic-auth", "a:b"}} {
					out := agentctl(t, append(append([]string{"--http-port", at.Port()}, refused...), command...)...)
					checkPrintable(t, command, out)
					if refused != nil && !strings.Contains(out, "FORGED") {
						t.Errorf("%q does not show the error: %s", command, out)
					}
				}
			}
		})
	}
}

// TestStoreIsPrintable has a store whose keys, values and errors attack.
func TestStoreIsPrintable(t *testing.T) {
	for name, attack := range attacks() {
		t.Run(name, func(t *testing.T) {
			pair, _ := json.Marshal(map[string]any{"key": "/vnf-agent/vpp1/k" + attack, "value": []byte("v" + attack)})
			socket := socketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/stores":
					_, _ = io.WriteString(w, `{"stores":["bolt"]}`)
				case strings.HasSuffix(r.URL.Path, "/keys"):
					_, _ = w.Write(pair)
				default:
					w.WriteHeader(http.StatusNotFound)
					_ = json.NewEncoder(w).Encode(map[string]string{"error": "no such key" + attack, "code": "not_found"})
				}
			}))
			for _, command := range [][]string{
				{"kvdb", "list"}, {"kvdb", "list", "--keys-only"}, {"kvdb", "list", "config/" + attack},
				{"kvdb", "get", "k" + attack}, {"kvdb", "del", "k" + attack}, {"kvdb", "put", "k" + attack, "v" + attack}, {"kvdb", "put", "--force", "k" + attack, "v" + attack},
			} {
				out := agentctl(t, append([]string{"--socket", socket}, command...)...)
				checkPrintable(t, command, out)
				if !strings.Contains(out, "FORGED") {
					t.Errorf("%q shows nothing: %s", command, out)
				}
			}
		})
	}
}

// TestGetIsExact shows that what programs read is not escaped.
func TestGetIsExact(t *testing.T) {
	const value = "a\x1b\n\u202e\xff"
	socket := socketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/stores" {
			_, _ = io.WriteString(w, `{"stores":["bolt"]}`)
			return
		}
		_, _ = io.WriteString(w, value)
	}))
	if out := agentctl(t, "--socket", socket, "kvdb", "get", "k"); out != value+"\n" {
		t.Errorf("get prints %q", out)
	}
}

// socketOf serves h on a socket.
func socketOf(t *testing.T, h http.Handler) string {
	dir, err := os.MkdirTemp("", "ctl") //nolint:usetesting // the folder of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	socket := filepath.Join(dir, "s")
	if server.Listener, err = listenUnix(t, socket); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() { server.Close(); os.RemoveAll(dir) })
	return socket
}

// agentctl runs one command and returns all that it prints.
func agentctl(t *testing.T, args ...string) string {
	var out, errs bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, none)
	return out.String() + errs.String()
}

func checkPrintable(t *testing.T, command []string, out string) {
	t.Helper()
	if out == "" {
		t.Errorf("%q prints nothing", command)
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(line) {
			t.Errorf("%q prints %q", command, line)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			t.Errorf("%q prints a forged line: %q", command, line)
		}
	}
}

func listenUnix(t *testing.T, socket string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
}

// TestCompletionIsPrintable has agents and stores whose names attack. A shell shows words as they are, so such words are
// left out.
func TestCompletionIsPrintable(t *testing.T) {
	for name, attack := range attacks() {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(hostile(attack))
			defer server.Close()
			at, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			names, _ := json.Marshal(map[string][]string{"stores": {"bolt" + attack, "redis"}})
			socket := socketOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(names) }))
			for _, command := range [][]string{
				{"--http-port", at.Port(), "explain", ""}, {"--http-port", at.Port(), "connections", "forget", ""}, {"--http-port", at.Port(), "plan", "--as", ""},
				{"--http-port", at.Port(), "values", ""}, {"--http-port", at.Port(), "log", "set", ""}, {"--socket", socket, "--store", ""}, {"--socket", socket, "kvdb", "get", ""},
			} {
				// A tab is before the description of a word.
				checkPrintable(t, command, strings.ReplaceAll(agentctl(t, append([]string{"__complete"}, command...)...), "\t", " "))
			}
			if out := agentctl(t, "__complete", "--socket", socket, "--store", ""); !strings.Contains(out, "redis") {
				t.Errorf("the other store is missing: %s", out)
			}
		})
	}
}

// A server at the agent's address sends a redirect, in the hope that the values follow it to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was asked %s %s", r.Method, r.URL) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/scheduler/plan", http.StatusTemporaryRedirect))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"plan", file}, {"apply", file}, {"status"}, {"values"}} {
		if out := agentctl(t, append([]string{"--http-port", at.Port()}, command...)...); !strings.Contains(out, "is a redirect to "+other.URL) {
			t.Errorf("%q: %s", command, out)
		}
	}
}
