package netalloc

import (
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/proto/ligato/netalloc"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

func give(address, gw string) *netalloc.IPAllocation {
	return &netalloc.IPAllocation{NetworkName: "net1", InterfaceName: "if/1", Address: address, Gw: gw}
}

func TestAllocationConforms(t *testing.T) {
	conformance.Run(t, conformance.Suite[*netalloc.IPAllocation, alloc.Allocation]{
		New: func(*testing.T) scheduler.Descriptor[*netalloc.IPAllocation, alloc.Allocation] {
			d := (&handler{current: map[string]*netalloc.IPAllocation{}}).descriptor()
			d.Retrieve = nil // it finds what is wanted
			return d
		},
		Values: []scheduler.Desired[*netalloc.IPAllocation]{
			{Value: give("10.0.0.1/24", "10.0.0.254")},
			{Value: &netalloc.IPAllocation{NetworkName: "net2", InterfaceName: "if1", Address: "fd00::1"}},
		},
		Changes: []conformance.Change[*netalloc.IPAllocation]{
			{Name: "address", From: give("10.0.0.1/24", ""), To: give("10.0.0.2/24", ""), How: conformance.Recreated},
		},
		Invalid: []conformance.Invalid[*netalloc.IPAllocation]{
			{Name: "all at once", Value: &netalloc.IPAllocation{NetworkName: "a/b", Address: "x", Gw: "10.0.0.1/33"}, Fields: []string{"network_name", "interface_name", "address", "gw"}},
			{Name: "versions", Value: give("fd00::1/64", "10.0.0.1"), Fields: []string{"gw"}},
		},
	})
}

// TestWhatStandsIsFound: an allocation stands as it was created, until that is deleted.
func TestWhatStandsIsFound(t *testing.T) {
	d := (&handler{current: map[string]*netalloc.IPAllocation{}}).descriptor()
	old, changed := give("10.0.0.1/24", ""), give("10.0.0.2/24", "")
	found := func() (out []string) {
		for f, err := range d.Retrieve(t.Context(), []scheduler.Desired[*netalloc.IPAllocation]{{Key: "k", Value: changed}}) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f.Meta.Address.String())
		}
		return out
	}
	if _, err := d.Create(t.Context(), "k", old); err != nil {
		t.Fatal(err)
	}
	if got := found(); len(got) != 1 || got[0] != "10.0.0.1/24" {
		t.Errorf("found %q, want what was created", got)
	}
	if err := d.Delete(t.Context(), "k", old, alloc.Allocation{}); err != nil {
		t.Fatal(err)
	}
	if got := found(); len(got) != 1 || got[0] != "10.0.0.2/24" {
		t.Errorf("found %q, want what is wanted", got)
	}
}

func TestGatewayThatIsANeighbour(t *testing.T) {
	for gw, want := range map[string]bool{"10.0.0.254": true, "10.0.1.254": false, "": false} {
		got := derived("", give("10.0.0.1/24", gw))
		if (len(got) == 1) != want || want && got[0].Key != "netalloc/neigh-gw/network/net1/interface/if/1" {
			t.Errorf("gateway %q: derived %v", gw, got)
		}
	}
}

// TestREADME: what it shows is valid, and has a gateway that is a neighbour.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	items, errs := structured.For(models.BuiltIn()).Parse([]byte(example), document.YAML)
	if len(errs) > 0 || len(items) != 1 || items[0].Err != nil {
		t.Fatalf("%+v, %v", items, errs)
	}
	message, err := models.BuiltIn().Decode(items[0].Key, items[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	v := message.(*netalloc.IPAllocation)
	if err := validate("", v); err != nil || len(derived("", v)) != 1 {
		t.Errorf("%v: %v", v, err)
	}
}
