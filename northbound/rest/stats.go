package rest

import (
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/internal/statistics"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// stats answers the statistics of the scheduler.
func (h *handler) stats(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	return reply.JSON(w, statistics.Of(stats.Of(h.sched), h.sched.Statuses(""), h.sched.History()))
}
