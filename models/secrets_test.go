package models_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

func TestRedacted(t *testing.T) {
	memif := func(secret string) *interfaces.Interface {
		return &interfaces.Interface{Name: "a", Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Id: 7, Secret: secret}}}
	}
	const want = `interfaces:{name:"a" memif:{id:7 secret:"(secret)"}} interfaces:{name:"a" memif:{id:7}} ipsec_sas:{index:3 crypto_key:"(secret)" integ_key:"(secret)"}`
	all := &vpp.ConfigData{
		Interfaces: []*interfaces.Interface{memif("x"), memif("")},
		IpsecSas:   []*ipsec.SecurityAssociation{{Index: 3, CryptoKey: "x", IntegKey: "y", CryptoSalt: 9}},
	}
	before := proto.Clone(all)
	if got, err := models.Text(models.Redacted(all), false); err != nil || got != want {
		t.Errorf("it is\n%s, want\n%s (%v)", got, want, err)
	}
	if !proto.Equal(all, before) {
		t.Error("the message itself is changed")
	}
	if one := memif(""); models.Redacted(one) != proto.Message(one) || models.Redacted(nil) != nil {
		t.Error("what has no secrets is copied")
	}
}

// A value with a hidden secret is refused, even if another secret of it is not hidden.
func TestCheckSecrets(t *testing.T) {
	memif := func(secret string) *interfaces.Interface {
		return &interfaces.Interface{Name: "a", Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Secret: secret}}}
	}
	for _, tt := range []struct {
		m    proto.Message
		want string
	}{
		{memif("s"), ""}, {memif(""), ""}, {&interfaces.Interface{Name: "(secret)"}, ""}, {nil, ""},
		{models.Redacted(memif("s")), "memif.secret"},
		{&ipsec.SecurityAssociation{CryptoKey: "(secret)", IntegKey: "y"}, "crypto_key"},
		{&vpp.ConfigData{Interfaces: []*interfaces.Interface{memif("s"), memif("(secret)")}}, "interfaces[1].memif.secret"},
	} {
		err := models.CheckSecrets(tt.m)
		if got := strings.Join(models.Fields(err), " "); got != tt.want {
			t.Errorf("%v: %v", tt.m, err)
		}
	}
	err := models.CheckSecrets(memif("(secret)"))
	if want := `memif.secret is "(secret)"; expected the secret itself; this text replaces secrets in answers`; err == nil || err.Error() != want {
		t.Errorf("it is %v, want %s", err, want)
	}
}

// TestSecretsAreMarked has every field whose name says that it is one.
func TestSecretsAreMarked(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	for _, m := range models.BuiltIn().All() {
		marked(t, m.New().ProtoReflect().Descriptor(), seen)
	}
}

func marked(t *testing.T, m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) {
	if seen[m.FullName()] {
		return
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		fd := m.Fields().Get(i)
		name := string(fd.Name())
		secret := strings.Contains(name, "secret") || strings.Contains(name, "private") || strings.Contains(name, "password") || strings.HasSuffix(name, "_salt") ||
			strings.HasSuffix(name, "_key") && name != "public_key"
		if options := fd.Options().(*descriptorpb.FieldOptions); options.GetDebugRedact() != secret {
			t.Errorf("%s: debug_redact is %v", fd.FullName(), !secret)
		}
		if fd.Message() != nil {
			marked(t, fd.Message(), seen)
		}
	}
}

func TestErrorsOfParsingTellNoSecrets(t *testing.T) {
	for value, want := range map[string]string{
		`{"name":"a","memif":{"secret":4711}}`:     "memif.secret: expected",
		`{"name":"a","memif":[{"secret":"4711"}]}`: "memif: expected",
		`{"name":"a","memif":{"secret":"4711"}`:    "not a JSON object",
	} {
		_, err := models.BuiltIn().Decode("config/vpp/v2/interfaces/a", []byte(value))
		if err == nil || strings.Contains(err.Error(), "4711") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: it says %v", value, err)
		}
	}
}
