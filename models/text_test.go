package models_test

import (
	"testing"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

func TestText(t *testing.T) {
	v := &interfaces.Interface{Name: `a  "b  \`, Enabled: true, Link: &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: "c"}}}
	for multiline, want := range map[bool]string{
		false: `name:"a  \"b  \\" enabled:true veth:{peer_if_name:"c"}`,
		true:  "name: \"a  \\\"b  \\\\\"\nenabled: true\nveth: {\n  peer_if_name: \"c\"\n}\n",
	} {
		if got, err := models.Text(v, multiline); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := models.Text(&interfaces.Interface{Name: "\xff"}, false); err == nil {
		t.Error("what is no UTF-8 has a text")
	}
}
