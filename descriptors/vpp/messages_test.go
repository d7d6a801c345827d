package vpp_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/internal/vppsim"
)

var update = flag.Bool("update", false, "write docs/vpp-messages.md")

const messagesDoc = "../../docs/vpp-messages.md"

const messagesHead = `# VPP messages in use

These are the requests and events of VPP's binary API that the descriptors use. The releases from 22.02 to 26.06 were compared.

- **used by**: the packages that send or receive the message.
- **not in**: the releases in which the message is missing, or differs from that of 25.10.
- **instead**: the message that is used on those releases, or the consequence for values.

A running VPP is asked for its own table of messages, so a release between these needs no change. The list is generated from the
code and the API definitions: ` + "`go test ./descriptors/vpp -run TestMessages -update`" + `.

VPP 26.06 marks ` + "`gre_tunnel_dump`, `wireguard_peer_add` and `wireguard_peers_dump`" + ` as deprecated, and answers them. Their successors,
` + "`gre_tunnel_v2_dump`, `wireguard_peer_add_v2` and `wireguard_peers_v2_dump`" + `, add the key of a GRE tunnel and the preshared key of a peer, which no
value declares; those of WireGuard are marked as in progress, so VPP may still change them. GoVPP has no bindings of them yet. They come into use with such bindings.

| message | used by | not in | instead |
|---|---|---|---|
`

// TestMessages holds the document to the code.
func TestMessages(t *testing.T) {
	want := messagesHead + strings.Join(messageLines(t), "")
	if *update {
		if err := os.WriteFile(messagesDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(messagesDoc)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the code uses (%v): go test ./descriptors/vpp -run TestMessages -update", messagesDoc, err)
	}
}

// otherwise is how the code does without messages that have no older variant.
var otherwise = map[string]string{
	"ip_neighbor_config_get":     "the agent remembers the last setting",
	"nat44_user_session_v3_dump": "not asked for; it tells releases apart",
}

func messageLines(t *testing.T) (lines []string) {
	used, lacking := usedMessages(t), lackingIn(t)
	for name, by := range used {
		without, instead := lacking[name], ""
		if without != "" {
			instead = cmp.Or(strings.Join(olderVariants(name, used), ", then "), otherwise[name], "values that need it are UNIMPLEMENTED")
		}
		slices.Sort(by)
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |\n", name, strings.Join(slices.Compact(by), ", "), without, instead))
	}
	slices.Sort(lines)
	if len(lines) < 30 {
		t.Errorf("found only %d messages: did the code change its form?", len(lines))
	}
	return lines
}

// TestEveryTagIsSigned holds the signing of tags to the messages that the code uses. An item whose tag
// is not signed would belong to every agent.
func TestEveryTagIsSigned(t *testing.T) {
	owner := ownership.New(ownership.Options{Label: "vpp1", Installation: installation})
	signing := ownership.WithTags(nil, owner).(conn.Translator)
	tagged := messagesIn(func(m api.Message) bool { return tagIn(m).IsValid() })
	used := namedMessages(t, tagged)
	for _, m := range tagged {
		name := m.GetMessageName()
		if used[name] == nil {
			continue
		}
		tagIn(m).SetString(owner.Tag("web"))
		signing.Translate(m)
		if tag := tagIn(m).String(); tag != "web" {
			t.Errorf("%s: the tag is %q after its translation; add the message to tagOf in internal/ownership", name, tag)
		}
	}
}

// tagIn is the field of a message that has the tag of an item; invalid: it has none.
func tagIn(m api.Message) (tag reflect.Value) {
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.String && strings.HasSuffix(v.Type().Field(i).Name, "Tag") {
			tag = v.Field(i)
		}
	}
	return tag
}

// usedMessages are the requests and events that the code names, with the packages that do.
func usedMessages(t *testing.T) map[string][]string {
	return namedMessages(t, messagesIn(func(m api.Message) bool {
		return !strings.HasSuffix(m.GetMessageName(), "_reply") && m.GetMessageType() != api.ReplyMessage
	}))
}

// messagesIn are those of the bindings that a filter selects, by package and type.
func messagesIn(selects func(api.Message) bool) map[string]api.Message {
	out := map[string]api.Message{}
	for _, all := range api.GetRegisteredMessages() {
		for _, registered := range all { // typed nil pointers
			kind := reflect.TypeOf(registered).Elem()
			if m := reflect.New(kind).Interface().(api.Message); selects(m) {
				out[kind.PkgPath()+"."+kind.Name()] = m
			}
		}
	}
	return out
}

// namedMessages are those of some messages that the code names, with the packages that do.
func namedMessages(t *testing.T, known map[string]api.Message) map[string][]string {
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.Name() == "simulated" || entry.Name() == "ownership") {
			return filepath.SkipDir // helps tests; changes messages that others send
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || path == "info.go" { // that only names them
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for name := range namesOf(file) {
			if message, is := known[name]; is {
				out[message.GetMessageName()] = append(out[message.GetMessageName()], partOf(path))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// partOf is the part of the descriptors that a file belongs to: iface for iface/internal/kinds/tap.go.
func partOf(path string) string {
	first, rest, below := strings.Cut(strings.TrimPrefix(path, "internal/"), "/")
	if !below && rest == "" {
		return "vpp"
	}
	return first
}

// namesOf are what a file names of the packages that it imports, each by its full path.
func namesOf(file *ast.File) map[string]bool {
	paths := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		paths[name] = path
	}
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if of, is := s.X.(*ast.Ident); is && paths[of.Name] != "" {
				out[paths[of.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	return out
}

var version = regexp.MustCompile(`_v\d+`)

// olderVariants are those of a message that are used too, the newest first.
func olderVariants(name string, used map[string][]string) (out []string) {
	for other := range used {
		if version.ReplaceAllString(other, "") == version.ReplaceAllString(name, "") && variant(other) < variant(name) {
			out = append(out, other)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return variant(b) - variant(a) })
	return out
}

func variant(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(version.FindString(name), "_v")) // none: 0
	return n
}

// lackingIn tells of each message in which releases it is not there as in 25.10.
func lackingIn(t *testing.T) map[string]string {
	text, err := os.ReadFile("../../internal/vppsim/core/releases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	releases := vppsim.Releases()
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		var without []string
		for i, release := range releases {
			if len(fields) > i+1 && (fields[i+1] == "-" || fields[i+1] == "x") {
				without = append(without, release)
			}
		}
		if len(without) > 0 {
			out[fields[0]] = ranges(without, releases)
		}
	}
	return out
}

// ranges is a part of all releases, in a few words.
func ranges(some, all []string) string {
	var out []string
	for from := 0; from < len(some); {
		to, at := from, slices.Index(all, some[from])
		for to+1 < len(some) && some[to+1] == all[at+to+1-from] {
			to++
		}
		if out = append(out, some[from]); to > from {
			out[len(out)-1] += " to " + some[to]
		}
		from = to + 1
	}
	return strings.Join(out, ", ")
}
