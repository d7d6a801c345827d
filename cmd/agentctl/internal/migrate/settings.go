package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/internal/nearest"
)

// A Finding is the verdict on one flag, setting or value of the older installation.
type Finding struct {
	Place   string `json:"place"`   // a flag, a file and its line, or a key
	What    string `json:"what"`    // the setting, or the model of the value
	Verdict string `json:"verdict"` // same, changed, ignored, refused or stops
	Why     string `json:"why,omitempty"`
}

// finding returns the finding of a fact.
func finding(place, what string, f fact) Finding {
	return Finding{show.Line(place), show.Line(what), string(f.verdict), show.Line(f.why)}
}

// text returns the finding without its verdict, for people.
func (f Finding) text() string {
	out := strings.TrimSpace(f.Place + " " + f.What)
	if f.Why != "" {
		out += ": " + f.Why
	}
	return out
}

// inFolder returns the findings about the configuration files in a folder, in the order of their names.
// Other files are left out: values in files are those of filedb.
func (s *start) inFolder(dir string) (out []Finding, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	// The flags in supervisor.conf name files, too, so they come first. Without the file there are none.
	supervised := start{given: maps.Clone(s.given)}
	text, err := files.ReadIn(dir, "supervisor.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	supervised.supervisor("supervisor.conf", text)
	if err := supervised.agentFile(dir); err != nil {
		return nil, err
	}
	read := map[string]bool{}
	for _, entry := range all {
		name := entry.Name()
		usual := supervised.nameOf(name)
		if filepath.Ext(name) != ".conf" && usual == name {
			continue
		}
		text, err := files.ReadIn(dir, name)
		if err != nil {
			return nil, err
		}
		read[usual] = true
		if usual == "initfileregistry.conf" {
			supervised.startUp.read(text)
		}
		out = append(out, supervised.inText(name, usual, text)...)
	}
	if len(read) == 0 {
		return nil, fmt.Errorf("%s: no configuration files: expected a folder with files such as etcd.conf", dir)
	}
	initial, err := supervised.initial(dir)
	if err != nil {
		return nil, err
	}
	return slices.Concat(out, supervised.findings, supervised.withoutFile(read), initial), nil
}

// withoutFile returns the findings about defaults that differ where a file is missing.
func (s *start) withoutFile(read map[string]bool) (out []Finding) {
	for _, name := range []string{"govpp.conf", "http.conf"} {
		if !read[name] {
			out = append(out, s.restored(s.defaults(name, name+" (missing)", nil))...)
		}
	}
	return out
}

// inText returns the findings about the content of a configuration file. usual is the name under which configFiles() has it.
func (s *start) inText(name, usual string, text []byte) []Finding {
	known, ofOlder := configFiles()[usual]
	switch {
	case usual == "":
		return []Finding{finding(name, "", fact{ignored, "a flag or a variable names another file"})}
	case !ofOlder:
		return []Finding{finding(name, "", fact{ignored, "vpp-agent 3.5 has no such file"})}
	case known == nil:
		return []Finding{finding(name, "", fact{ignored, "the agent has no such part"})}
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return []Finding{finding(name, "", fact{stops, err.Error()})}
	}
	if len(root.Content) == 0 {
		return s.restored(append([]Finding{finding(name, "", fact{same, ""})}, s.defaults(usual, name, nil)...))
	}
	top := root.Content[0]
	out := known.findings(name, usual, "", top)
	if top.Kind == yaml.MappingNode {
		out = append(out, s.defaults(usual, name, top)...)
	}
	return s.restored(out)
}

// agentFile reads from agent.conf in a folder whether the older rights hold. A flag comes first.
func (s *start) agentFile(dir string) error {
	var conf struct {
		Compat string `yaml:"compat"`
	}
	text, err := files.ReadIn(dir, "agent.conf")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case yaml.Unmarshal(text, &conf) == nil && conf.Compat != "":
		s.give("compat", conf.Compat)
	}
	return nil
}

// restored returns the findings as they are with -compat, if the flag or agent.conf says so.
func (s *start) restored(all []Finding) []Finding {
	if s.given["compat"] != older {
		return all
	}
	for i, f := range all {
		switch {
		case !f.restorable():
		default:
			all[i].Verdict, all[i].Why = string(same), ""
		}
	}
	return all
}

// restorable reports whether -compat makes it work as before.
func (f Finding) restorable() bool { return strings.HasSuffix(f.Why, restores) }

// defaults returns the findings about keys that a file does not have, and whose defaults differ.
func (s *start) defaults(usual, place string, m *yaml.Node) (out []Finding) {
	missing := func(key, why string) {
		if child(m, key) == nil {
			out = append(out, finding(place, key, restorable(changed, why)))
		}
	}
	switch usual {
	case "http.conf":
		if !says(m, "disabled") {
			port := cmp.Or(s.given["http-port"], "9191")
			if child(m, "endpoint") != nil && !says(m, "client-basic-auth") {
				out = append(out, finding(place, "POST /vpp/command", restorable(changed, narrower)))
			}
			missing("endpoint", fmt.Sprintf("vpp-agent 3.5 listened on 0.0.0.0:%s without users; the agent listens on 127.0.0.1:%s, where everybody may only read", port, port))
		}
		if says(m, "enable-token-auth") {
			for key, why := range map[string]string{
				"sign-key": "it has no default; the agent needs one of at least 32 bytes for tokens, such as from: openssl rand -base64 32",
				"users":    "the user admin with a known password does not exist; the agent needs at least one for tokens",
			} {
				if n := child(m, key); n == nil || key == "users" && !says(m, key) {
					out = append(out, finding(place, key, restorable(stops, why)))
				}
			}
			slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.What, b.What) })
		}
	case "grpc.conf":
		missing("endpoint", "vpp-agent 3.5 listened on 0.0.0.0:9111; the agent listens on 127.0.0.1:9111, where everybody may only read")
	case "govpp.conf":
		missing("proxy-enabled", "the default was true and is false: the proxy gives all of VPP to everybody who reaches HTTP")
	}
	return out
}

// child returns the value of a key, or nil.
func child(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// says reports whether a key is true, or is a list or a text that is not empty.
func says(m *yaml.Node, key string) bool {
	n := child(m, key)
	return n != nil && (len(n.Content) > 0 || n.Value != "" && n.Value != "false")
}

// findings returns the findings about the keys of a mapping.
func (s settings) findings(file, usual, parent string, m *yaml.Node) (out []Finding) {
	if m.Kind != yaml.MappingNode {
		return []Finding{finding(fmt.Sprintf("%s:%d", file, m.Line), parent, fact{stops, "expected keys with values"})}
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		name := parent + key.Value
		known, ok := s[name]
		if !ok {
			known = s.unknown(name, parent)
		}
		known = withValue(known, usual, name, m, value)
		if value.Kind == yaml.MappingNode && ok && s.hasBelow(name) {
			out = append(out, s.findings(file, usual, name+".", value)...)
			continue
		}
		out = append(out, finding(fmt.Sprintf("%s:%d", file, key.Line), name, known))
	}
	return out
}

// unknown returns the fact about a key that the older agent did not know, and ignored.
func (s settings) unknown(name, parent string) fact {
	var siblings []string
	for other := range s {
		if last, ok := strings.CutPrefix(other, parent); ok && !strings.Contains(last, ".") {
			siblings = append(siblings, last)
		}
	}
	slices.Sort(siblings)
	if meant := nearest.Word(strings.TrimPrefix(name, parent), siblings); meant != "" {
		return fact{ignored, ignoredToo + " (did you mean " + parent + meant + "?)"}
	}
	return fact{ignored, ignoredToo}
}

// withValue returns the fact about a key whose value decides. m has the key.
func withValue(known fact, usual, name string, m, value *yaml.Node) fact {
	if why := contradiction(usual+" "+name, m, value); why != "" {
		return fact{stops, why}
	}
	switch usual + " " + name {
	case "http.conf users":
		if len(value.Content) > 0 && !says(m, "enable-token-auth") {
			return fact{ignored, "vpp-agent 3.5 had no use for them without enable-token-auth: true, either"}
		}
	case "http.conf sign-key":
		switch {
		case !says(m, "enable-token-auth"):
			return fact{same, ""}
		case len(value.Value) < 32:
			return restorable(stops, known.why)
		}
	case "etcd.conf expand-env-variables":
		if !says(m, "expand-env-variables") {
			return fact{same, ""}
		}
	case "initfileregistry.conf initial-configuration-file-path":
		if !strings.Contains(value.Value, "/") {
			return fact{changed, "it is in -config-dir, and no longer in the current directory"}
		}
	}
	return known
}

// contradiction returns why a key and others of its file cannot both be meant, so that the agent does not start.
// vpp-agent 3.5 ignored one of them.
func contradiction(key string, m, value *yaml.Node) string {
	switch key {
	case "etcd.conf endpoints":
		secure := !says(m, "insecure-transport") && slices.ContainsFunc([]string{"ca-file", "cert-file", "key-file", "insecure-skip-tls-verify"},
			func(setting string) bool { return says(m, setting) })
		if secure && slices.ContainsFunc(value.Content, func(e *yaml.Node) bool { return strings.HasPrefix(e.Value, "http://") }) {
			return "vpp-agent 3.5 used clear text: write https://, or take the settings of TLS away"
		}
	case "etcd.conf expand-env-variables":
		if says(m, "expand-env-variables") && !says(m, "expand-env-names") {
			return needsNames
		}
	case "redis.conf tls.skip-verify", "redis.conf tls.cert-file", "redis.conf tls.key-file", "redis.conf tls.ca-file":
		if _, setting, _ := strings.Cut(key, "tls."); says(m, setting) && !says(m, "enabled") {
			return "vpp-agent 3.5 used clear text: write enabled: true, or take this setting away"
		}
	}
	return ""
}

// hasBelow reports whether settings within a setting are known.
func (s settings) hasBelow(name string) bool {
	for other := range s {
		if strings.HasPrefix(other, name+".") {
			return true
		}
	}
	return false
}

// supervisor reads the flags with which vpp-agent-init started the agent, which supervisor.conf has.
func (s *start) supervisor(file string, text []byte) {
	var conf struct {
		Programs []struct {
			Path      string   `yaml:"executable-path"`
			Arguments []string `yaml:"executable-args"`
		} `yaml:"programs"`
	}
	if yaml.Unmarshal(text, &conf) != nil {
		return
	}
	for _, program := range conf.Programs {
		if filepath.Base(program.Path) == "vpp-agent" {
			s.commandLine(file, program.Arguments)
		}
	}
}

// commandLine returns the findings about the flags of a command line.
func commandLine(place string, arguments []string) (out []Finding) {
	known := flags()
	for _, argument := range arguments {
		name, isFlag := strings.CutPrefix(argument, "-")
		if !isFlag {
			continue // the value of the flag before
		}
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		f, ok := known[name]
		if !ok {
			f = fact{stops, "vpp-agent 3.5 has no such flag, and neither has the agent"}
		}
		out = append(out, finding(place, "-"+name, f))
	}
	return out
}

// worst returns whether anything stops the agent, or is refused.
func worst(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Verdict == string(stops) || f.Verdict == string(refused) })
}
