package models

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

// watermark is a model that is not built in: of a message that any program has.
func watermark() Definition {
	return Definition{Module: "acme.qos", Version: "v1", Type: "watermark", NameTemplate: "{{.Value}}", Field: "watermarks"}
}

func TestADefinedModelIsReadLikeABuiltInOne(t *testing.T) {
	defined := Define[*wrapperspb.StringValue](watermark())
	all, err := BuiltIn().With(defined.Model)
	if err != nil {
		t.Fatal(err)
	}
	const key = "config/acme/qos/v1/watermark/high"
	m, name, ok := all.ByKey(key)
	if !ok || m != defined.Model || name != "high" || m.Name() != "acme.qos.watermark" || m.Singleton() {
		t.Errorf("key %s: model %v, name %q, found %v", key, m, name, ok)
	}
	if got, err := m.Key(wrapperspb.String("high")); err != nil || got != key {
		t.Errorf("key %q, %v", got, err)
	}
	for _, field := range []string{"watermarks", "StringValue_list", "StringValueList"} {
		if got, list, ok := all.ByConfigField("acme_config", field); !ok || !list || got != m {
			t.Errorf("field %s: %v, list %v, found %v", field, got, list, ok)
		}
	}
	if groups, fields := all.ConfigGroups(), all.ConfigFields("acmeConfig"); groups[0] != "acmeConfig" || !slices.Equal(fields, []string{"watermarks"}) {
		t.Errorf("groups %q with fields %q", groups, fields)
	}
	if got, ok := all.ByMessage("google.protobuf.StringValue"); !ok || got != m {
		t.Errorf("by message: %v, %v", got, ok)
	}
	if !all.Has(Define[*wrapperspb.StringValue](watermark()).Model) || BuiltIn().Has(m) {
		t.Error("Has compares something else than definitions")
	}
	if _, _, ok := BuiltIn().ByKey(key); ok {
		t.Error("the built-in models have changed")
	}
}

// A package variable is initialised before the generated code of a message in the same package, and has no
// type of the message then.
func TestAModelIsDefinedBeforeItsMessage(t *testing.T) {
	m := Define[*early](watermark())
	if m.Prefix() != "config/acme/qos/v1/watermark/" || m.Singleton() || m.KeyOf("high") != "config/acme/qos/v1/watermark/high" {
		t.Errorf("prefix %q, singleton %v", m.Prefix(), m.Singleton())
	}
}

// early is a message whose generated code is not initialised yet.
type early struct{ wrapperspb.StringValue }

// ProtoReflect panics, as that of generated code does then.
func (*early) ProtoReflect() protoreflect.Message { panic("the message is not initialised") }

// A module may have more elements than any built-in one.
func TestKeysOfDeepModules(t *testing.T) {
	d := watermark()
	d.Module, d.NameTemplate, d.Field = "acme.a.b.c.d.e.f", "", ""
	single := Define[*durationpb.Duration](d).Model
	d.NameTemplate, d.Type = "{{.Value}}", "list"
	list := Define[*wrapperspb.StringValue](d).Model
	all, err := BuiltIn().With(single, list)
	if err != nil {
		t.Fatal(err)
	}
	if m, name, ok := all.ByKey("config/acme/a/b/c/d/e/f/v1/watermark"); m != single || name != "" || !ok {
		t.Errorf("singleton: %v %q %v", m, name, ok)
	}
	if m, name, ok := all.ByKey("config/acme/a/b/c/d/e/f/v1/list/x/y"); m != list || name != "x/y" || !ok {
		t.Errorf("list: %v %q %v", m, name, ok)
	}
}

func TestFaultsOfDefinitions(t *testing.T) {
	define := func(change func(d *Definition)) *Model {
		d := watermark()
		change(&d)
		return Define[*wrapperspb.StringValue](d).Model
	}
	tests := []struct {
		name string
		more []*Model
		want string
	}{
		{"no module", []*Model{define(func(d *Definition) { d.Module = "" })}, `Module is empty; expected small letters, digits, "-" and "_" with dots between words, such as acme.qos`},
		{"capitals", []*Model{define(func(d *Definition) { d.Type = "WaterMark" })}, `Type is "WaterMark"; expected small letters`},
		{"version", []*Model{define(func(d *Definition) { d.Version = "1" })}, `Version is "1"; expected a version such as v1`},
		{"field", []*Model{define(func(d *Definition) { d.Field = "a-b" })}, `Field is "a-b"; expected letters and digits`},
		{"template", []*Model{define(func(d *Definition) { d.NameTemplate = "{{.Value" })}, "NameTemplate: "},
		{"unknown field", []*Model{define(func(d *Definition) { d.NameTemplate = "{{.Label}}" })}, "can't evaluate field Label"},
		{"no field", []*Model{define(func(d *Definition) { d.NameTemplate = "same" })}, "NameTemplate: has no field of the message; expected one such as {{.Name}}"},
		{"a built-in name", []*Model{define(func(d *Definition) { d.Module, d.Type, d.Version = "linux.l3", "route", "v3" })}, "model linux.l3.route: another model has this name"},
		{"keys below built-in ones", []*Model{define(func(d *Definition) { d.Module, d.Version, d.Type = "vpp.l2", "v2", "fib.more" })},
			"its keys config/vpp/l2/v2/fib/more/ and those of vpp.l2.fib, config/vpp/l2/v2/fib/, overlap"},
		{"a built-in field", []*Model{define(func(d *Definition) { d.Module, d.Field = "linux", "arp_entries" })}, "its field arp_entries in linux_config is that of linux.l3.arp"},
		{"a built-in message", []*Model{Define[*l3.Route](Definition{Module: "acme", Version: "v1", Type: "route", NameTemplate: "{{.DstNetwork}}"}).Model},
			"its message ligato.linux.l3.Route is that of linux.l3.route: expected a message of its own"},
		{"twice", []*Model{define(func(*Definition) {}), define(func(*Definition) {})}, "model acme.qos.watermark: another model has this name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := BuiltIn().With(tt.more...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A value whose fields make no name has no key.
func TestValueWithoutAName(t *testing.T) {
	d := watermark()
	d.NameTemplate = `{{if eq .Value "x"}}x{{end}}`
	m := Define[*wrapperspb.StringValue](d).Model
	for _, value := range []string{"", "y"} {
		if key, err := m.Key(wrapperspb.String(value)); err == nil {
			t.Errorf("value %q has the key %q", value, key)
		}
	}
}

// The built-in models have no overlap, so that each could be defined.
func TestBuiltInModelsDoNotClash(t *testing.T) {
	for i, m := range BuiltIn().All() {
		for _, other := range BuiltIn().All()[:i] {
			if err := m.clash(other); err != nil {
				t.Errorf("%s: %v", m.Name(), err)
			}
		}
	}
}

// A template gives the names that clients compute with it, and the code of built-in models.
func TestNamesByTemplate(t *testing.T) {
	all := map[*Model]*Model{}
	for _, m := range named() {
		all[m] = &Model{Class: m.Class, prefix: m.prefix, template: m.template, late: m.late}
		if err := all[m].nameByTemplate(execute)(m.message()); err != nil {
			t.Fatalf("%s: %v", m.Name(), err)
		}
	}
	draw.Check(t, func(t *rapid.T) {
		for _, m := range named() {
			v := drawValue(t, m)
			if got, want := all[m].name(v), m.name(v); got != want {
				t.Errorf("%s: name %q, want %q", m.Name(), got, want)
			}
		}
	})
}
