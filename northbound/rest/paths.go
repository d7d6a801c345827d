package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
)

// A Path is one that a program adds to those of the agent. It has their bounds, permissions and
// logins, and is in the list of GET / and in the OpenAPI document.
type Path struct {
	// Method defaults to GET. A path with another one changes something, if Changes says so.
	Method string
	// Path is "/acme/notes" or "/acme/notes/{name}". Its first element is none of the agent's.
	Path string
	// About is a line for the list of all paths.
	About string
	// Arguments are those of the query, such as "name=, format=yaml|json". Others are refused.
	Arguments string
	// Changes says that a request changes something. Users need the permission nbConfigWrite then, and
	// over TCP without users it is refused, unless http.conf says otherwise. Users need the permission info for
	// the others.
	Changes bool
	// Body is the media type of the request's body. Defaults to none.
	Body string
	// Media is that of the answer. Defaults to JSON.
	Media string
	// Handler answers. It is required.
	Handler http.Handler
}

// endpoint returns the path as one of the table.
func (p Path) endpoint() endpoint.Endpoint {
	group := endpoint.Info
	if p.Changes {
		group = endpoint.Write
	}
	out := endpoint.Get(p.Path, group, p.Arguments, p.About, func(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
		p.Handler.ServeHTTP(w, r)
		return nil
	}).By(cmp.Or(p.Method, http.MethodGet)).Takes(p.Body)
	if p.Media != "" {
		return out.Writes(p.Media)
	}
	return out.Answers(map[string]any{})
}

// added returns the paths of the program.
func (h *handler) added() (out []endpoint.Endpoint) {
	for _, p := range h.Paths {
		out = append(out, p.endpoint())
	}
	return out
}

// ownPath matches what Path.Path may be.
var ownPath = regexp.MustCompile(`^(/[A-Za-z0-9._-]+)+(/\{[a-z]+\})?$`)

// CheckPaths returns an error for the first of o.Paths that cannot be served: a handler for it would clash
// with one of the agent.
func (o Options) CheckPaths() error {
	agents := map[string]bool{}
	h := handler{Options: o, sched: o.Scheduler}
	h.Paths = nil
	for _, e := range h.endpoints() {
		agents[firstElement(e.Path)] = true
	}
	var seen []string
	for _, p := range o.Paths {
		id := cmp.Or(p.Method, http.MethodGet) + " " + regexp.MustCompile(`\{.*\}`).ReplaceAllString(p.Path, "{}")
		switch {
		case p.Handler == nil:
			return fmt.Errorf("path %q: Handler is missing", p.Path)
		case !ownPath.MatchString(p.Path):
			return fmt.Errorf("path %q: expected one such as /acme/notes or /acme/notes/{name}", p.Path)
		case agents[firstElement(p.Path)]:
			return fmt.Errorf("path %q: the agent has paths below /%s; expected another first element", p.Path, firstElement(p.Path))
		case slices.Contains(seen, id):
			return fmt.Errorf("path %q: there are two handlers for %s", p.Path, id)
		}
		seen = append(seen, id)
	}
	return nil
}

// firstElement returns "scheduler" for "/scheduler/dump".
func firstElement(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
