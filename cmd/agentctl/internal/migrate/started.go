package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/files"
)

// A start is how the older agent was started: its flags and variables, with findings about them.
type start struct {
	findings []Finding
	given    map[string]string // values of flags by their names, also of those in the environment
	startUp  startUp
}

// commandLine adds the flags of a command line. The first value of a flag counts: those of the command line come
// before those of the environment.
func (s *start) commandLine(place string, arguments []string) {
	s.findings = append(s.findings, commandLine(place, arguments)...)
	for i, argument := range arguments {
		name, isFlag := strings.CutPrefix(argument, "-")
		if !isFlag {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !ok && i+1 < len(arguments) {
			value = arguments[i+1]
		}
		s.give(name, value)
	}
}

// variable adds a variable of the environment. One that the older agent did not read belongs to another program.
func (s *start) variable(place, name, value string) {
	f, known := variables()[name]
	if !known && (strings.HasPrefix(name, "DEBUG_") || strings.HasPrefix(name, "KVSCHED_")) {
		f, known = fact{ignored, levels}, true
	}
	if known {
		s.findings = append(s.findings, finding(place, name, f))
		s.give(strings.ToLower(strings.ReplaceAll(name, "_", "-")), value)
	}
}

// give sets the value of a flag, unless it has one.
func (s *start) give(flag, value string) {
	if _, ok := s.given[flag]; !ok {
		s.given[flag] = value
	}
}

// variables returns the facts about all variables that the older agent read under fixed names.
func variables() settings {
	out := environment()
	for name, f := range flags() {
		out[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = f
	}
	return out
}

// nameOf returns the name under which a configuration file is known, such as etcd.conf for a file that -etcd-config names.
// It is empty if the older agent did not read a file of this name, because a flag names another one.
func (s *start) nameOf(file string) string {
	for _, flag := range slices.Sorted(maps.Keys(s.given)) {
		if usual, ok := strings.CutSuffix(flag, "-config"); ok && filepath.Base(s.given[flag]) == file {
			return usual + ".conf"
		}
	}
	if usual, ok := strings.CutSuffix(file, ".conf"); ok {
		if other, given := s.given[usual+"-config"]; given && other != "" {
			return ""
		}
	}
	return file
}

// environmentFile reads a file of NAME=VALUE lines, as systemd and Docker read them, by read.
func (s *start) environmentFile(path string, read func(path string) ([]byte, error)) error {
	text, err := read(path)
	if err != nil {
		return err
	}
	s.environmentText(filepath.Base(path), string(text))
	return nil
}

// environmentText reads lines of the form NAME=VALUE.
func (s *start) environmentText(place, text string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "="); ok {
			s.variable(fmt.Sprintf("%s:%d", place, number), strings.TrimSpace(name), strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
}

// file reads a unit of systemd, or a file of Compose or Kubernetes.
func (s *start) file(path string) error {
	text, err := files.Read(path)
	if err != nil {
		return err
	}
	before := len(s.findings)
	if strings.HasSuffix(path, ".service") {
		err = s.unit(path, string(text))
	} else {
		err = s.manifests(path, text)
	}
	if err == nil && len(s.findings) == before {
		// A file of values has no such parts. Other files are none of values, and their mistakes as such say nothing.
		if found := valuesIn(filepath.Base(path), text); slices.ContainsFunc(found, func(f Finding) bool { return f.What != "" }) {
			s.findings = append(s.findings, found...)
		}
	}
	if err == nil && len(s.findings) == before {
		err = fmt.Errorf("%s: no flags, no variables and no values of %s in it", path, older)
	}
	return err
}

// isStart reports whether a path is that of a file that file reads.
func isStart(path string) bool {
	return slices.Contains([]string{".service", ".yaml", ".yml"}, filepath.Ext(path))
}

// unit reads a unit of systemd.
func (s *start) unit(path, text string) error {
	place, number := "", 0
	logical := ""
	for line := range strings.Lines(text) {
		number++
		if logical == "" {
			place = fmt.Sprintf("%s:%d", filepath.Base(path), number)
		}
		line = strings.TrimSpace(line)
		if part, ok := strings.CutSuffix(line, `\`); ok {
			logical += part + " "
			continue
		}
		if err := s.unitLine(place, path, logical+line); err != nil {
			return err
		}
		logical = ""
	}
	return nil
}

// unitLine reads one setting of a unit.
func (s *start) unitLine(place, path, line string) error {
	name, value, _ := strings.Cut(line, "=")
	switch name {
	case "ExecStart":
		s.command(place, words(strings.TrimLeft(value, "@-:+!")))
	case "Environment":
		for _, word := range words(value) {
			name, value, _ := strings.Cut(word, "=")
			s.variable(place, name, value)
		}
	case "EnvironmentFile":
		file, optional := strings.CutPrefix(value, "-")
		if err := s.environmentFile(file, files.ReadPlain); err != nil && !optional {
			return fmt.Errorf("%s: EnvironmentFile: %w; expected the file, or a copy of %s without this line, and --env", place, err, filepath.Base(path))
		}
	}
	return nil
}

// command reads the words of a command: flags of vpp-agent, or the variables that docker run or podman run give to it.
func (s *start) command(place string, words []string) {
	if len(words) == 0 {
		return
	}
	if filepath.Base(words[0]) == "vpp-agent" {
		s.commandLine(place, words[1:])
		return
	}
	for i, word := range words {
		pair, ok := strings.CutPrefix(word, "--env=")
		if (word == "-e" || word == "--env") && i+1 < len(words) {
			pair, ok = words[i+1], true
		}
		if name, value, _ := strings.Cut(pair, "="); ok {
			s.variable(place, name, value)
		}
	}
}

// words splits a line at its spaces, except within quotes.
func words(line string) (out []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, c := range line {
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			begun, quote = true, c
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				out = append(out, word.String())
			}
			begun = false
			word.Reset()
		default:
			begun = true
			word.WriteRune(c)
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

// manifests reads the documents of a file of Compose or Kubernetes.
func (s *start) manifests(path string, text []byte) error {
	in := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := s.manifest(path, &doc); err != nil {
			return err
		}
	}
}

// manifest reads the environments and commands in a tree, wherever they are: of a service in Compose, and of a container in
// Kubernetes. Aliases are left out, because their anchors are read.
func (s *start) manifest(path string, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		for _, one := range n.Content {
			if err := s.manifest(path, one); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var err error
		switch value := n.Content[i+1]; n.Content[i].Value {
		case "environment", "env":
			s.environmentNode(path, value)
		case "env_file":
			err = s.environmentFiles(path, value)
		case "command", "args", "entrypoint":
			s.command(fmt.Sprintf("%s:%d", filepath.Base(path), value.Line), commandOf(value))
		default:
			err = s.manifest(path, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// environmentNode reads variables: a mapping, a list of NAME=VALUE, or a list of mappings with name and value.
func (s *start) environmentNode(path string, n *yaml.Node) {
	at := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", filepath.Base(path), n.Line) }
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.variable(at(n.Content[i]), n.Content[i].Value, n.Content[i+1].Value)
		}
		return
	}
	for _, one := range n.Content {
		name, value, _ := strings.Cut(one.Value, "=")
		for i := 0; i+1 < len(one.Content); i += 2 {
			switch one.Content[i].Value {
			case "name":
				name = one.Content[i+1].Value
			case "value":
				value = one.Content[i+1].Value
			}
		}
		s.variable(at(one), name, value)
	}
}

// environmentFiles reads the files that env_file names, relative to the file of Compose.
func (s *start) environmentFiles(path string, n *yaml.Node) error {
	for _, file := range commandOf(n) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		if err := s.environmentFile(file, files.ReadPlain); err != nil {
			return fmt.Errorf("%s:%d: env_file: %w", filepath.Base(path), n.Line, err)
		}
	}
	return nil
}

// commandOf returns the words of a command: a list, or a line.
func commandOf(n *yaml.Node) (out []string) {
	if n.Kind == yaml.ScalarNode {
		return words(n.Value)
	}
	for _, one := range n.Content {
		out = append(out, one.Value)
	}
	return out
}
