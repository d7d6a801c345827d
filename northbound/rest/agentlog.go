package rest

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Logs is the table of log levels.
type Logs interface {
	// Levels returns the level of each logger by its name.
	Levels() map[string]string
	// SetLevel sets the level of a logger. An unknown logger is ErrNoLogger; other errors
	// name the levels that are allowed.
	SetLevel(logger, level string) error
}

// ErrNoLogger reports the name of a logger that does not exist.
var ErrNoLogger = errors.New("there is no such logger: expected one that GET /log/list or agentctl log list prints")

// Errors of parts that this agent lacks.
var (
	errNoLogs   = errors.New("this agent has no log levels")
	errNoHealth = errors.New("this agent has no health")
)

// logList answers all loggers, sorted by name.
func (h *handler) logList(w http.ResponseWriter, _ *http.Request, _ endpoint.Query) error {
	if h.Logs == nil {
		return reply.NotFound(errNoLogs)
	}
	levels := h.Logs.Levels()
	// Never nil, so that an empty table is [] and not null.
	out := []wire.LogLevel{}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		out = append(out, wire.LogLevel{Logger: name, Level: levels[name]})
	}
	return reply.JSON(w, out)
}

// setLogLevel sets the level of a logger, and answers it.
func (h *handler) setLogLevel(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	if h.Logs == nil {
		return reply.NotFound(errNoLogs)
	}
	logger, level := r.PathValue("logger"), r.PathValue("level")
	err := h.Logs.SetLevel(logger, level)
	if errors.Is(err, ErrNoLogger) {
		return reply.NotFound(err)
	}
	if err != nil {
		return reply.BadRequest(err)
	}
	return reply.JSON(w, wire.LogLevel{Logger: logger, Level: h.Logs.Levels()[logger]})
}
