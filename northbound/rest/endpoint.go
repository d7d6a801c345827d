package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/nearest"
)

// An endpoint is one method of one path of the API. The table of endpoints is the only
// list of them: the handlers, the index, the OpenAPI document and the permissions come
// from it. If serve returns an error, it has written nothing of the answer yet, and the
// error becomes the answer.
type endpoint struct {
	method, path string // the path as in the documentation: "/log/{logger}/{level}"
	// group is the permission that a user needs; see groups.go.
	group     group
	arguments string // names of the arguments as the index shows them; others are refused
	about     string // description for the index
	serve     func(w http.ResponseWriter, r *http.Request, q query) error

	expensive bool   // limited in number: see limits.go
	body      string // media type of the request's body; "": it has none
	shape     any    // a value of the type of the answer, for the OpenAPI document
	media     string // media type of the answer. "": JSON
}

// get returns an endpoint that reads.
func get(path string, group group, arguments, about string, serve func(http.ResponseWriter, *http.Request, query) error) endpoint {
	return endpoint{method: http.MethodGet, path: path, group: group, arguments: arguments, about: about, serve: serve}
}

// by returns the endpoint with another method.
func (e endpoint) by(method string) endpoint {
	e.method = method
	return e
}

// takes returns the endpoint with a body of a media type.
func (e endpoint) takes(media string) endpoint {
	e.body = media
	return e
}

// answers returns the endpoint with the type of its answer, as a value of that type.
func (e endpoint) answers(shape any) endpoint {
	e.shape = shape
	return e
}

// writes returns the endpoint with the media type of an answer that is not JSON.
func (e endpoint) writes(media string) endpoint {
	e.media = media
	return e
}

// costly returns the endpoint as one whose answers need much memory or time.
func (e endpoint) costly() endpoint {
	e.expensive = true
	return e
}

// pattern returns the path as a pattern of http.ServeMux.
func (e endpoint) pattern() string {
	if e.path == "/" {
		return "/{$}"
	}
	return e.path
}

// answer serves one request.
func (e endpoint) answer(w http.ResponseWriter, r *http.Request) {
	// Before serve, so that no endpoint has to check for unknown arguments.
	q, err := e.query(r.URL)
	if err == nil {
		err = e.serve(w, r, q)
	}
	if err != nil {
		fail(w, err)
	}
}

// argumentPattern matches one argument in endpoint.arguments, such as "view=SB|NB".
var argumentPattern = regexp.MustCompile(`([a-z-]+)=([A-Za-z0-9|]*)`)

// An argument is one argument in the query of an endpoint.
type argument struct {
	name  string
	words []string // the allowed values; empty: any
	many  bool     // it may be repeated
}

// known returns the arguments of the endpoint.
func (e endpoint) known() (out []argument) {
	for _, m := range argumentPattern.FindAllStringSubmatchIndex(e.arguments, -1) {
		a := argument{name: e.arguments[m[2]:m[3]], many: strings.HasPrefix(e.arguments[m[1]:], " (many)")}
		if words := e.arguments[m[4]:m[5]]; strings.Contains(words, "|") {
			a.words = strings.Split(words, "|")
		}
		out = append(out, a)
	}
	return out
}

// query returns the arguments of a request. Unknown arguments are errors: a typing
// mistake would otherwise select all values.
func (e endpoint) query(u *url.URL) (query, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return query{}, badRequest(fmt.Errorf("arguments: %w", err))
	}
	var names []string
	for _, a := range e.known() {
		names = append(names, a.name)
	}
	for name := range values {
		if slices.Contains(names, name) {
			continue
		}
		expected := "expected none"
		if near := nearest.Word(name, names); near != "" {
			expected = "did you mean " + near + "?"
		} else if len(names) > 0 {
			expected = fmt.Sprintf("expected %s", e.arguments)
		}
		return query{}, badRequest(fmt.Errorf("unknown argument %s: %s", name, expected))
	}
	return query{values}, nil
}

// methodNotAllowed returns a handler for requests with a method that the path lacks.
func methodNotAllowed(path string, methods []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		fail(w, statusError{http.StatusMethodNotAllowed, fmt.Errorf("%s %s: expected %s", r.Method, path, strings.Join(methods, " or "))})
	}
}

// unknownPath answers requests for other paths, with the most similar path.
func (h *handler) unknownPath(w http.ResponseWriter, r *http.Request) {
	var paths []string
	for _, e := range h.endpoints() {
		paths = append(paths, e.path)
	}
	hint := "GET / lists what there is"
	if near := nearest.Word(r.URL.Path, paths); near != "" {
		hint = "did you mean " + near + "?"
	}
	fail(w, notFound(fmt.Errorf("no such path: %s: %s", r.URL.Path, hint)))
}
