package nat

import (
	"context"
	"slices"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// An askedAPI keeps the names of single requests.
type askedAPI struct {
	conn.API
	asked []string
}

func (a *askedAPI) Call(ctx context.Context, request, reply api.Message) error {
	a.asked = append(a.asked, request.GetMessageName())
	return a.API.Call(ctx, request, reply)
}

// TestOnlyThePluginInUseIsAsked: a group of mappings costs one question beside its batch, since
// each question is a round trip. The other plugin is asked if that of the declared value is off.
func TestOnlyThePluginInUseIsAsked(t *testing.T) {
	const ed, ei = "nat44_show_running_config", "nat44_ei_show_running_config"
	each(t, func(t *testing.T, endpointIndependent bool) {
		h, _, _ := enabledVPP(t, simulated.Releases()[0], endpointIndependent)
		asked := &askedAPI{API: h.API}
		h.API = asked
		first, second := ed, ei
		if endpointIndependent {
			first, second = ei, ed
		}
		p, err := h.inUse(t.Context())
		if err != nil || p.endpointDependent() == endpointIndependent || !slices.Equal(asked.asked, []string{first}) {
			t.Errorf("asked %v: %v, endpoint-dependent %v", asked.asked, err, p.endpointDependent())
		}
		h.independent.Store(!endpointIndependent)
		asked.asked = nil
		p, err = h.inUse(t.Context())
		if err != nil || p.endpointDependent() == endpointIndependent || !slices.Equal(asked.asked, []string{second, first}) {
			t.Errorf("after a change of the declared value: asked %v: %v", asked.asked, err)
		}
	})
}
