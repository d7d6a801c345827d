package documents_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// mistaken has mistakes that agentctl finds, and one that only an agent can know.
const mistaken = `linuxConfig:
  interfaces:
    - {name: a, type: VETH, mtu: 5, hostIfName: x, veth: {peerIfName: b}}
    - {name: c, type: DUMY}
  routes:
    - {outgoingInterface: a, dstNetwork: 10.0.0.0/8, gwAddr: x}
`

// lines prints findings one per line, without warnings.
func lines(found []documents.Finding) string {
	var out []string
	for _, f := range found {
		if !f.Warning {
			out = append(out, f.String())
		}
	}
	return strings.Join(out, "\n")
}

// TestOneVoice has an agent refuse values in its words. What agentctl finds by itself is said as validate says
// it, once, with the names of fields as in the file. What only the agent knows stands at its field.
func TestOneVoice(t *testing.T) {
	const a, c, route = "config/linux/interfaces/v2/interface/a", "config/linux/interfaces/v2/interface/c", "config/linux/l3/v2/route/10.0.0.0/8/a"
	docs := documents.Of("lab.yaml", []byte(mistaken))
	validated := lines(docs.Check(models.BuiltIn()))
	const want = `lab.yaml:3:29: ` + a + `: mtu is 5; expected 68 to 4294967295
lab.yaml:4:17: ` + c + `: type is "DUMY"; expected `
	if !strings.HasPrefix(validated, want) || !strings.Contains(validated, "lab.yaml:6:54: "+route+`: gwAddr is "x"; expected `) {
		t.Errorf("validate says\n%s", validated)
	}
	refused := docs.Refused([]wire.Invalid{
		{Key: route, Line: 6, Error: `invalid value: gwAddr is "x"; expected an address`, Fields: []string{"gwAddr"}},
		{Key: a, Line: 3, Error: "mtu is 5; expected more; hostIfName is \"x\"; expected another name", Fields: []string{"mtu", "hostIfName"}},
		{Key: c, Line: 4, Error: `type is "DUMY"`, Fields: []string{"type"}},
		{Error: "and 3 more are invalid"},
	})
	extra := "lab.yaml:3:37: " + a + `: hostIfName is "x"; expected another name`
	expected := "and 3 more are invalid\n" + strings.Replace(validated, "\nlab.yaml:4:", "\n"+extra+"\nlab.yaml:4:", 1)
	if got := lines(refused); got != expected {
		t.Errorf("a plan says\n%s\nexpected\n%s", got, expected)
	}
	// A verb that has failed is no mistake of the file: nothing is added but the place of the value.
	if got := lines(docs.Refused([]wire.Invalid{{Key: a, Error: "no memory"}})); got != "lab.yaml:3:7: "+a+": no memory" {
		t.Errorf("a failure is %s", got)
	}
}
