package models_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
)

// Errors name fields as the user has written them.
func TestSpellingOfErrors(t *testing.T) {
	const key = "config/linux/interfaces/v2/interface/veth1"
	for name, test := range map[string]struct{ value, want string }{
		"camel":            {`{"name":"veth1","ipAddresses":"10.0.0.1/24"}`, "ipAddresses is "},
		"snake":            {`{"name":"veth1","ip_addresses":"10.0.0.1/24"}`, "ip_addresses is "},
		"nested camel":     {`{"name":"veth1","veth":{"peerIfName":7}}`, "veth.peerIfName is 7"},
		"unknown, camel":   {`{"name":"veth1","ipAdresses":[]}`, "did you mean ipAddresses?"},
		"unknown, snake":   {`{"name":"veth1","ip_adresses":[]}`, "did you mean ip_addresses?"},
		"style of others":  {`{"name":"veth1","hostIfName":"x","addresses":[]}`, "ipAddresses"},
		"twice":            {`{"name":"veth1","ip_addresses":[],"ipAddresses":[]}`, "ipAddresses: expected the field only once"},
		"control, camel":   {`{"name":"veth1","hostIfName":"a\u0007"}`, "hostIfName"},
		"control, snake":   {`{"name":"veth1","host_if_name":"a\u0007"}`, "host_if_name"},
		"not at all valid": {`{"name":"veth1","ipAddresses":[`, "not a JSON object"},
	} {
		_, err := models.BuiltIn().Decode(key, []byte(test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// Fields that are missing get the style of the others, and values that are equal to names do not count.
func TestSpellingOfMissingFields(t *testing.T) {
	for value, want := range map[string]string{
		`{"hostIfName":"x"}`:                          "veth.peerIfName",
		`{"host_if_name":"x"}`:                        "veth.peer_if_name",
		`{"name":"peerIfName","list":["peerIfName"]}`: "veth.peer_if_name",
		`{"a":[{"b":{"peerIfName":1}},[2,"x"]]}`:      "veth.peerIfName",
		`{"peerIfName":1,"a_b":1,"c_d":2}`:            "veth.peerIfName",
		`]`:                                           "veth.peer_if_name",
		``:                                            "veth.peer_if_name",
	} {
		err := errors.Join(&models.FieldError{Field: "veth.peer_if_name[3]"})
		models.SpellFields(err, []byte(value))
		if got := err.Error(); got != want+"[3] is required" {
			t.Errorf("%s: %q, want %s", value, got, want)
		}
	}
}
