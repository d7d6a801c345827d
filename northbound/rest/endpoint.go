package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/keyplane/keyplane/internal/nearest"
)

// An endpoint is one path of the API. If serve returns an error, it has written
// nothing of the answer yet, and the error becomes the answer.
type endpoint struct {
	method, path string
	arguments    string // names of the arguments as the index shows them; others are refused
	about        string // description for the index
	serve        func(w http.ResponseWriter, r *http.Request, q query) error
	expensive    bool // limited in number: see limits.go
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
	q, err := e.query(r.URL)
	if err == nil {
		err = e.serve(w, r, q)
	}
	if err != nil {
		fail(w, err)
	}
}

// query returns the arguments of a request. Unknown arguments are errors: a typing
// mistake would otherwise select all values.
func (e endpoint) query(u *url.URL) (query, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return query{}, badRequest(fmt.Errorf("arguments: %w", err))
	}
	known := map[string]bool{}
	var names []string
	for _, m := range regexp.MustCompile(`([a-z-]+)=`).FindAllStringSubmatch(e.arguments, -1) {
		known[m[1]] = true
		names = append(names, m[1])
	}
	for name := range values {
		if known[name] {
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

// methodNotAllowed answers requests with another method.
func (e endpoint) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", e.method)
	fail(w, statusError{http.StatusMethodNotAllowed, fmt.Errorf("%s %s: expected %s", r.Method, e.path, e.method)})
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
