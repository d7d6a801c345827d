package models

import (
	"slices"
	"strings"
	"unicode"
)

// The structured form is the notation for files: groups with a field for each model,
//
//	vppConfig:
//	  interfaces: [...]   # a list of the values of a model
//	  nat44Global: {...}  # the value of a singleton
//
// A group is named after the first element of the module. Names of groups and fields
// may also be written with underscores ("vpp_config", "nat44_global"), and by the
// name in gRPC if that differs ("wgPeers").

// A configField is a field of a group in one of its notations: the key of the index
// in Registry.
type configField struct{ group, field string }

// ByConfigField returns the model of a field of the structured form, and whether the field
// holds a list of values.
func (r *Registry) ByConfigField(group, field string) (m *Model, repeated, ok bool) {
	m, ok = r.byField[configField{snake(group), field}]
	return m, ok && !m.Singleton(), ok
}

// ConfigField returns the group and field of the model in the structured form:
// "linuxConfig", "arpEntries". Both are empty for a model that is no configuration.
func (m *Model) ConfigField() (group, field string) {
	names := m.late().config
	if len(names) == 0 {
		return "", ""
	}
	first, _, _ := strings.Cut(m.Module, ".")
	return first + "Config", names[0]
}

// ConfigGroups returns the groups of the structured form, sorted: "vppConfig" and others.
func (r *Registry) ConfigGroups() []string { return slices.Clone(r.groups) }

// ConfigFields returns the fields of a group in the order of their models, or none for an
// unknown group.
func (r *Registry) ConfigFields(group string) []string {
	return slices.Clone(r.fields[snake(group)])
}

// addConfigField indexes the notations of the field of m.
func (r *Registry) addConfigField(m *Model) {
	group, field := m.ConfigField()
	if field == "" {
		return
	}
	if _, ok := r.fields[snake(group)]; !ok {
		r.groups = append(r.groups, group)
	}
	r.fields[snake(group)] = append(r.fields[snake(group)], field)
	for _, name := range m.configFields() {
		r.byField[name] = m
	}
}

// configFields returns all notations of the field of m.
func (m *Model) configFields() (out []configField) {
	group, _ := m.ConfigField()
	for _, name := range m.late().config {
		for _, spelling := range []string{name, camel(name), snake(name)} {
			out = append(out, configField{snake(group), spelling})
		}
	}
	return out
}

// camel writes a name without underscores: "Peer_list" as "PeerList".
func camel(name string) string {
	var b strings.Builder
	words := strings.Split(name, "_")
	b.WriteString(words[0])
	for _, word := range words[1:] {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// snake writes a name that begins with a small letter with underscores: "vppConfig" as
// "vpp_config". Names with a capital are names of messages and stay.
func snake(name string) string {
	if name == "" || unicode.IsUpper(rune(name[0])) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
