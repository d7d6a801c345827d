package names

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// page is the number of values that one request asks for: the most that an agent answers.
const page = 1000

// list asks the agent for values with keys that contain the words of search, sorted by key.
// At most the first ones are listed; 0: all of them.
func list(ctx context.Context, s *session.Session, search string, most int) (out []browse.ListedValue, err error) {
	for {
		var part browse.ValuePage
		err := s.Get(ctx, "/scheduler/values", url.Values{"search": {search}, "offset": {strconv.Itoa(len(out))}, "limit": {strconv.Itoa(page)}}, &part)
		if refused, ok := errors.AsType[session.StatusError](err); ok && refused.Status == http.StatusNotFound {
			return listAll(ctx, s)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, part.Values...)
		if len(part.Values) == 0 || len(out) >= part.Total || most > 0 && len(out) >= most {
			return out, nil
		}
	}
}

// listAll is list for agents of earlier releases, which cannot search.
func listAll(ctx context.Context, s *session.Session) (out []browse.ListedValue, err error) {
	var statuses []wire.BaseValueStatus
	if err := s.Get(ctx, "/scheduler/status", url.Values{"key-prefix": {""}, "key": {""}}, &statuses); err != nil {
		return nil, err
	}
	for _, base := range statuses {
		out = append(out, browse.ListedValue{Key: base.Value.Key, State: base.Value.State})
		for _, d := range base.DerivedValues {
			out = append(out, browse.ListedValue{Key: d.Key, State: d.State, Base: base.Value.Key})
		}
	}
	return out, nil
}

// last returns the last element of a name or key.
func last(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
