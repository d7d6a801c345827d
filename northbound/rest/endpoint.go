package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/keyplane/keyplane/internal/nearest"
)

// An endpoint is one path. Its error becomes the answer; what is written before is
// complete.
type endpoint struct {
	method, path string
	arguments    string // as people write them; others are refused
	about        string
	serve        func(w http.ResponseWriter, r *http.Request, q query) error
	expensive    bool // few of these are served at once
}

// pattern is the path as ServeMux has it.
func (e endpoint) pattern() string {
	if e.path == "/" {
		return "/{$}"
	}
	return e.path
}

func (e endpoint) answer(w http.ResponseWriter, r *http.Request) {
	q, err := e.query(r.URL)
	if err == nil {
		err = e.serve(w, r, q)
	}
	if err != nil {
		fail(w, err)
	}
}

// query reads the arguments of a request, which are no others than it takes.
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
		want := "expected none"
		if near := nearest.Word(name, names); near != "" {
			want = "did you mean " + near + "?"
		} else if len(names) > 0 {
			want = fmt.Sprintf("expected %s", e.arguments)
		}
		return query{}, badRequest(fmt.Errorf("unknown argument %s: %s", name, want))
	}
	return query{values}, nil
}

// misused answers the methods that the path has not.
func (e endpoint) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", e.method)
	fail(w, statusError{http.StatusMethodNotAllowed, fmt.Errorf("%s %s: expected %s", r.Method, e.path, e.method)})
}

// nowhere answers paths that there are not.
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
