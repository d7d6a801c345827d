package migrate

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
)

// A Finding is the verdict on one flag, setting or value of the older installation.
type Finding struct {
	Place   string `json:"place"`   // a flag, a file and its line, or a key
	What    string `json:"what"`    // the setting, or the model of the value
	Verdict string `json:"verdict"` // same, changed, ignored or stops
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
func inFolder(dir string) (out []Finding, err error) {
	all, err := filepath.Glob(filepath.Join(dir, "*.conf"))
	if err != nil || len(all) == 0 {
		return nil, fmt.Errorf("%s: no configuration files: expected a folder with files such as etcd.conf", dir)
	}
	for _, path := range all {
		found, err := inFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// inFile returns the findings about one configuration file.
func inFile(path string) ([]Finding, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return inText(filepath.Base(path), text), nil
}

// inText returns the findings about the content of a configuration file.
func inText(name string, text []byte) []Finding {
	known, ofOlder := files()[name]
	switch {
	case !ofOlder:
		return []Finding{finding(name, "", fact{ignored, "vpp-agent 3.5 has no such file"})}
	case known == nil:
		return append([]Finding{finding(name, "", fact{ignored, "the agent has no such part"})}, supervised(name, text)...)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return []Finding{finding(name, "", fact{stops, err.Error()})}
	}
	if len(root.Content) == 0 {
		return []Finding{finding(name, "", fact{same, ""})}
	}
	return known.findings(name, "", root.Content[0])
}

// findings returns the findings about the keys of a mapping.
func (s settings) findings(file, parent string, m *yaml.Node) (out []Finding) {
	if m.Kind != yaml.MappingNode {
		return []Finding{finding(fmt.Sprintf("%s:%d", file, m.Line), parent, fact{stops, "expected keys with values"})}
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		name := parent + key.Value
		known, ok := s[name]
		if !ok {
			known = fact{changed, "vpp-agent 3.5 ignored this key; the agent does, too, but ends if it is nearly a known one"}
		}
		if name == "endpoint" && (file == "http.conf" || file == "grpc.conf") && onLoopback(value.Value) {
			known = fact{same, ""}
		}
		if name == "sign-key" && len(value.Value) < 32 {
			known.verdict = stops
		}
		if value.Kind == yaml.MappingNode && ok && s.hasBelow(name) {
			out = append(out, s.findings(file, name+".", value)...)
			continue
		}
		out = append(out, finding(fmt.Sprintf("%s:%d", file, key.Line), name, known))
	}
	return out
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

// onLoopback reports whether an endpoint can be reached from this host only.
func onLoopback(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return strings.HasPrefix(endpoint, "/") // a Unix socket
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// supervised returns the findings about the flags with which vpp-agent-init started the agent, which
// supervisor.conf has.
func supervised(file string, text []byte) (out []Finding) {
	var conf struct {
		Programs []struct {
			Path      string   `yaml:"executable-path"`
			Arguments []string `yaml:"executable-args"`
		} `yaml:"programs"`
	}
	if file != "supervisor.conf" || yaml.Unmarshal(text, &conf) != nil {
		return nil
	}
	for _, program := range conf.Programs {
		if filepath.Base(program.Path) == "vpp-agent" {
			out = append(out, commandLine(file, program.Arguments)...)
		}
	}
	return out
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

// inEnvironment returns the findings about a file of NAME=VALUE lines, as systemd and Docker read them. A variable that the
// older agent did not read belongs to another program, and is left out.
func inEnvironment(path string) ([]Finding, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return variables(filepath.Base(path), string(text)), nil
}

// variables returns the findings about lines of the form NAME=VALUE.
func variables(place, text string) (out []Finding) {
	byName := environment()
	for name, f := range flags() {
		byName[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = f
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		f, known := byName[strings.TrimSpace(name)]
		if !known && (strings.HasPrefix(name, "DEBUG_") || strings.HasPrefix(name, "KVSCHED_")) {
			f, known = fact{ignored, levels}, true
		}
		if ok && known {
			out = append(out, finding(fmt.Sprintf("%s:%d", place, number), strings.TrimSpace(name), f))
		}
	}
	return out
}

// worst returns whether anything stops the agent.
func worst(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Verdict == string(stops) })
}
