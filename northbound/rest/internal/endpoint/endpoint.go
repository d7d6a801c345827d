// Package endpoint describes the HTTP API as a table: each path with its method, permission,
// arguments, body and answer. The handlers, the index for people, the OpenAPI document for
// programs and the permissions of users all come from this table, so none of them can lack an
// endpoint.
//
// An endpoint refuses arguments that it does not name. A mistyped argument would otherwise
// be ignored, and the client would get, or delete, more than it asked for.
package endpoint

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// An Endpoint is one method of one path of the API. The table of endpoints is the only
// list of them: the handlers, the index, the OpenAPI document and the permissions come
// from it. If serve returns an error, it has written nothing of the answer yet, and the
// error becomes the answer. An Endpoint is immutable: By, Takes and the others return
// changed copies, so that the table reads like a sentence.
type Endpoint struct {
	Method, Path string // the path as in the documentation: "/log/{logger}/{level}"
	// group is the permission that a user needs; see Group.
	Group     Group
	Arguments string // names of the arguments as the index shows them; others are refused
	About     string // description for the index
	Serve     func(w http.ResponseWriter, r *http.Request, q Query) error

	Expensive bool   // limited in number, because its answer needs much memory or time
	ReadsBack bool   // also limited, because it waits for the system
	Body      string // media type of the request's body; "": it has none
	Shape     any    // a value of the type of the answer, for the OpenAPI document
	Media     string // media type of the answer. "": JSON
}

// Get returns an endpoint that reads.
func Get(path string, group Group, arguments, about string, serve func(http.ResponseWriter, *http.Request, Query) error) Endpoint {
	return Endpoint{Method: http.MethodGet, Path: path, Group: group, Arguments: arguments, About: about, Serve: serve}
}

// By returns the endpoint with another method.
func (e Endpoint) By(method string) Endpoint {
	e.Method = method
	return e
}

// Takes returns the endpoint with a body of a media type.
func (e Endpoint) Takes(media string) Endpoint {
	e.Body = media
	return e
}

// Answers returns the endpoint with the type of its answer, as a value of that type.
func (e Endpoint) Answers(shape any) Endpoint {
	e.Shape = shape
	return e
}

// Writes returns the endpoint with the media type of an answer that is not JSON.
func (e Endpoint) Writes(media string) Endpoint {
	e.Media = media
	return e
}

// Costly returns the endpoint as one whose answers need much memory or time.
func (e Endpoint) Costly() Endpoint {
	e.Expensive = true
	return e
}

// FromSystem returns the endpoint as a costly one that reads the actual state of the system.
func (e Endpoint) FromSystem() Endpoint {
	e.Expensive, e.ReadsBack = true, true
	return e
}

// Changes reports whether a request changes something: the network, or a log level. VPP's command line and its proxy
// have rules of their own.
func (e Endpoint) Changes() bool {
	return e.Group == Write || e.Group == Log && e.Method != http.MethodGet
}

// Pattern returns the path as a pattern of http.ServeMux.
func (e Endpoint) Pattern() string {
	if e.Path == "/" {
		return "/{$}"
	}
	return e.Path
}

// Handle serves one request.
func (e Endpoint) Handle(w http.ResponseWriter, r *http.Request) {
	// Before serve, so that no endpoint has to check for unknown arguments.
	q, err := e.query(r.URL)
	if err == nil {
		err = e.Serve(w, r, q)
	}
	if err != nil {
		reply.Fail(w, err)
	}
}

// argumentPattern matches one argument in endpoint.arguments, such as "view=SB|NB".
var argumentPattern = regexp.MustCompile(`([a-z-]+)=([A-Za-z0-9|]*)`)

// An Argument is one argument in the query of an endpoint.
type Argument struct {
	// As in the query. It has only small letters and hyphens; argumentPattern accepts no
	// others.
	Name  string
	Words []string // the allowed values; empty: any
	Many  bool     // it may be repeated
}

// Known returns the arguments of the endpoint.
func (e Endpoint) Known() (out []Argument) {
	for _, m := range argumentPattern.FindAllStringSubmatchIndex(e.Arguments, -1) {
		a := Argument{Name: e.Arguments[m[2]:m[3]], Many: strings.HasPrefix(e.Arguments[m[1]:], " (many)")}
		if words := e.Arguments[m[4]:m[5]]; strings.Contains(words, "|") {
			a.Words = strings.Split(words, "|")
		}
		out = append(out, a)
	}
	return out
}

// query returns the arguments of a request. Unknown arguments are errors: a typing
// mistake would otherwise select all values.
func (e Endpoint) query(u *url.URL) (Query, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Query{}, reply.BadRequest(fmt.Errorf("arguments: %w", err))
	}
	var names []string
	for _, a := range e.Known() {
		names = append(names, a.Name)
	}
	for name := range values {
		if slices.Contains(names, name) {
			continue
		}
		expected := "expected none"
		if near := nearest.Word(name, names); near != "" {
			expected = "did you mean " + near + "?"
		} else if len(names) > 0 {
			expected = fmt.Sprintf("expected %s", e.Arguments)
		}
		return Query{}, reply.BadRequest(fmt.Errorf("unknown argument %s: %s", name, expected))
	}
	return Query{values}, nil
}

// MethodNotAllowed returns a handler for requests with a method that the path lacks.
func MethodNotAllowed(path string, methods []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		reply.Fail(w, reply.Status(http.StatusMethodNotAllowed, fmt.Errorf("%s %s: expected %s", r.Method, path, strings.Join(methods, " or "))))
	}
}

// UnknownPath returns a handler for requests for other paths than these. A path with a slash too many leads
// to the one without it. Otherwise it answers the most similar path. find returns the pattern that serves a
// request; "/": none does.
func UnknownPath(endpoints func() []Endpoint, find func(*http.Request) (http.Handler, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if shorter := strings.TrimRight(r.URL.Path, "/"); shorter != r.URL.Path && shorter != "" {
			// The address is relative: a proxy may have taken the beginning of the path away.
			to := url.URL{Path: "../" + path.Base(shorter), RawQuery: r.URL.RawQuery}
			without := r.Clone(r.Context())
			without.URL.Path, without.URL.RawPath = shorter, ""
			if _, pattern := find(without); pattern != "/" {
				w.Header().Set("Location", to.String())
				w.WriteHeader(http.StatusPermanentRedirect)
				return
			}
		}
		var paths []string
		for _, e := range endpoints() {
			paths = append(paths, e.Path)
		}
		hint := "GET / lists what there is"
		if near := nearest.Word(r.URL.Path, paths); near != "" {
			hint = "did you mean " + near + "?"
		}
		reply.Fail(w, reply.NotFound(fmt.Errorf("no such path: %s: %s", r.URL.Path, hint)))
	}
}
