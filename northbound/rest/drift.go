package rest

import (
	"net/http"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/connections"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
)

// drift answers the values that differ from the declared ones, without secrets. It reads
// the whole system, so it is one of the costly requests.
func (h *handler) drift(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	d, err := drift.Check(r.Context(), h.sched)
	if err != nil {
		return err
	}
	out := wire.Drift{Start: d.Start, Stop: d.Stop, Read: d.Read, Count: len(d.Values), Values: []wire.Drifted{}, Unknown: connections.Unknown(d.Unknown)}
	for _, v := range d.Values {
		one := wire.Drifted{
			Key: v.Key, Descriptor: v.Descriptor, Kind: v.Kind.String(),
			Desired: wire.MessageOf(models.Redacted(v.Desired)), Actual: wire.MessageOf(models.Redacted(v.Actual)),
		}
		if v.State == scheduler.Retrying || v.State == scheduler.Failed {
			one.State = v.State.String()
		}
		out.Values = append(out.Values, one)
	}
	for _, err := range d.Errors {
		out.NotReadBack = append(out.NotReadBack, err.Error())
	}
	return reply.JSON(w, out)
}
