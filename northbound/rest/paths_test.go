package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A program's own paths have the permissions of the agent's, and are where people and programs look for paths.
func TestOwnPaths(t *testing.T) {
	inWorld(t, func(w *world) {
		answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"did": %q}`, r.Method+" "+r.PathValue("name")+" "+r.URL.Query().Get("color"))
		})
		o := w.options()
		o.readOnly = true
		o.Paths = []Path{
			{Path: "/acme/notes/{name}", About: "one note", Arguments: "color=red|blue", Handler: answer},
			{Method: http.MethodPut, Path: "/acme/notes/{name}", About: "write a note", Changes: true, Body: "text/plain", Handler: answer},
		}
		if err := o.CheckPaths(); err != nil {
			t.Fatal(err)
		}
		w.handler = Handler(o)
		for _, tt := range []struct {
			method, url string
			status      int
			says        string
		}{
			{"GET", "/acme/notes/a?color=red", http.StatusOK, "GET a red"},
			{"GET", "/acme/notes/a?colour=red", http.StatusBadRequest, "unknown argument colour: did you mean color?"},
			{"PUT", "/acme/notes/a", http.StatusForbidden, "PUT /acme/notes/{name} needs a password"},
			{"DELETE", "/acme/notes/a", http.StatusMethodNotAllowed, "expected GET or PUT"},
			{"GET", "/", http.StatusOK, "write a note"},
			{"GET", "/openapi.json", http.StatusOK, "/acme/notes/{name}"},
		} {
			if status, text := w.ask(tt.method, tt.url, ""); status != tt.status || !strings.Contains(text, tt.says) {
				t.Errorf("%s %s: %d %s, want %d with %s", tt.method, tt.url, status, text, tt.status, tt.says)
			}
		}
		o.readOnly = false
		w.handler = Handler(o)
		if status, text := w.ask("PUT", "/acme/notes/b", "text"); status != http.StatusOK || !strings.Contains(text, "PUT b") {
			t.Errorf("where everybody may write: %d %s", status, text)
		}
	})
}

// A path that clashes with another one is an error of the start, and no panic.
func TestMistakesInOwnPaths(t *testing.T) {
	answer := http.NotFoundHandler()
	for want, paths := range map[string][]Path{
		`path "/acme": Handler is missing`:                                    {{Path: "/acme"}},
		`path "acme": expected one such as /acme/notes or /acme/notes/{name}`: {{Path: "acme", Handler: answer}},
		`path "/{name}/notes": expected one such as`:                          {{Path: "/{name}/notes", Handler: answer}},
		`path "/": expected one such as`:                                      {{Path: "/", Handler: answer}},
		`path "/scheduler/mine": the agent has paths below /scheduler`:        {{Path: "/scheduler/mine", Handler: answer}},
		`path "/metrics": the agent has paths below /metrics`:                 {{Path: "/metrics", Handler: answer}},
		`path "/acme/{id}": there are two handlers for GET /acme/{}`:          {{Path: "/acme/{name}", Handler: answer}, {Path: "/acme/{id}", Handler: answer}},
	} {
		if err := (Options{Paths: paths}).CheckPaths(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
