package models

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Definition describes a model that is not built in. Its values have the key
//
//	config/MODULE/VERSION/TYPE/NAME
//
// Slashes replace the dots of Module. Keys, and the name of a value, are the interface to
// every store and client: they should never change.
type Definition struct {
	// Module names the group of models: "acme.qos". Its first element is the group in
	// files, here acmeConfig. Elements have small letters, digits, "-" and "_".
	Module string
	// Version of the module: "v1".
	Version string
	// Type names the model within its module: "shaper". It has the characters of Module.
	Type string
	// NameTemplate makes the name of a value from its content, as a text/template of
	// fields by their names in Go: "{{.Interface}}/{{.Queue}}". Clients receive it.
	// Functions are ipnet, which masks a network and returns its IP and MaskSize, and
	// protoip, which returns IPv4 or IPv6 of an address. Defaults to no name: the model
	// has one value.
	NameTemplate string
	// Field is the name of its field in files: "shapers". Defaults to the name that other
	// clients compute: Shaper_list for a message Shaper, or Shaper without a NameTemplate.
	// That name is accepted too.
	Field string
	// Source is the text of the .proto file that declares the message. With it, agentctl, the
	// schema for editors and other clients show the comments of the fields, which generated code
	// lacks. A program has the text by go:embed. Defaults to none: fields have no comments.
	Source string
}

// Define returns the model of the messages V. It has no effect by itself: pass its Model to
// [Registry.With], which also returns the faults of the definition. The result may be a package
// variable.
func Define[V proto.Message](d Definition) Of[V] {
	m := singleton[V](d.Module, d.Version, d.Type, d.Field)
	m.define(d, execute)
	return Of[V]{m}
}

// execute executes the template of names for a message of a Go type.
func execute(name *template.Template, v proto.Message) (string, error) {
	var out strings.Builder
	err := name.Execute(&out, v)
	return out.String(), err
}

// define completes m by its definition. nameOf executes the template of names for a value.
func (m *Model) define(d Definition, nameOf func(*template.Template, proto.Message) (string, error)) {
	m.source = d.Source
	first, fault := m.late, d.check()
	check := func(protoreflect.MessageType) error { return nil }
	if d.NameTemplate != "" {
		m.prefix += "/"
		m.template = d.NameTemplate
		check = m.nameByTemplate(nameOf)
	}
	m.late = sync.OnceValue(func() *late {
		l := *first()
		list := string(l.message.Descriptor().Name())
		if d.NameTemplate != "" {
			list += "_list"
		}
		l.config = append(slices.Clip(l.config), list)
		l.fault = cmp.Or(fault, check(l.message))
		return &l
	})
}

// Characters of the parts of a Definition.
var (
	dottedWords = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$`)
	versionWord = regexp.MustCompile(`^v[0-9][a-z0-9]*$`)
	fieldWord   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_]*)?$`)
)

// check returns an error for each part that has not the form that keys need.
func (d Definition) check() error {
	var f Faults
	for _, part := range []struct {
		name, value, expected string
		form                  *regexp.Regexp
	}{
		{"Module", d.Module, `small letters, digits, "-" and "_" with dots between words, such as acme.qos`, dottedWords},
		{"Version", d.Version, "a version such as v1", versionWord},
		{"Type", d.Type, `small letters, digits, "-" and "_", such as shaper`, dottedWords},
		{"Field", d.Field, "letters and digits, such as shapers", fieldWord},
	} {
		if !part.form.MatchString(part.value) {
			f.Add(part.name, part.value, "%s", part.expected)
		}
	}
	return f.Err()
}

// nameByTemplate makes the function name of m from its template. It returns a function that returns the
// fault of the template for the messages of a type.
func (m *Model) nameByTemplate(nameOf func(*template.Template, proto.Message) (string, error)) func(protoreflect.MessageType) error {
	t, err := template.New("NameTemplate").Funcs(templateFuncs()).Parse(m.template)
	m.name = func(v proto.Message) string {
		if err != nil {
			return ""
		}
		text, err := nameOf(t, v)
		if err != nil {
			return "" // Key reports that there is no name
		}
		return text
	}
	return func(message protoreflect.MessageType) error {
		if err != nil {
			return fmt.Errorf("NameTemplate: %w", err)
		}
		if _, err := nameOf(t, message.New().Interface()); err != nil {
			return fmt.Errorf("NameTemplate: of an empty value: %w", err)
		}
		if len(keyFieldsIn(m.template, message.Descriptor())) == 0 {
			return errors.New("NameTemplate: has no field of the message; expected one such as {{.Name}}")
		}
		return nil
	}
}

// templateFuncs are the functions of name templates. Clients have the same.
func templateFuncs() template.FuncMap {
	return template.FuncMap{"ipnet": ipnet, "protoip": family}
}

// ipnet splits a network for a template. It returns nil for a reference to an allocated
// address.
func ipnet(cidr string) map[string]any {
	if strings.HasPrefix(cidr, allocPrefix) {
		return nil
	}
	if _, _, err := net.ParseCIDR(cidr); err != nil {
		return map[string]any{"IP": invalid, "MaskSize": 0}
	}
	ip, ones, _ := strings.Cut(network(cidr), "/")
	size, _ := strconv.Atoi(ones)
	return map[string]any{"IP": ip, "MaskSize": size}
}
