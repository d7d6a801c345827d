// Package ui is the agent's page: a program for browsers that shows the agent's state with the
// HTTP API. docs/ui.md is for its users.
//
//	src      TypeScript with Preact, and one style sheet
//	dist     the build, which is embedded; make generate writes it
//
// The page makes no request to other hosts, and its Content-Security-Policy forbids them. Values
// are hostile: all their texts become text nodes or attributes, never HTML. The page itself has
// no secret, so everybody may load it; what it shows needs the permissions of each path.
package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

//go:generate ./generate.sh

//go:embed dist
var dist embed.FS

// policy is the Content-Security-Policy (W3C, level 3). It permits only files of this agent: no
// inline scripts or styles, no other hosts, and no other page that shows this one in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Endpoints returns the paths of the page.
func Endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		endpoint.Get("/ui", endpoint.Open, "", "the agent's page for browsers", page).Writes("text/html"),
		endpoint.Get("/ui/{file}", endpoint.Open, "", "a file of the page", file).Writes("application/octet-stream"),
	}
}

// page answers the document.
func page(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	return serve(w, r, "index.html")
}

// file answers a file that the document names.
func file(w http.ResponseWriter, r *http.Request, _ endpoint.Query) error {
	return serve(w, r, r.PathValue("file"))
}

// errNoFile is the answer for other names.
var errNoFile = errors.New("the page has no such file")

// serve answers one file of the build. Browsers keep it, and ask each time whether it is still
// the same: a new agent has a new page.
func serve(w http.ResponseWriter, r *http.Request, name string) error {
	text, err := dist.ReadFile("dist/" + name) // embed refuses paths with ..
	if err != nil || path.Ext(name) == ".sha256" {
		return reply.NotFound(fmt.Errorf("%q: %w", name, errNoFile))
	}
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	reply.Header(w, mime.TypeByExtension(path.Ext(name)), http.StatusOK)
	_, _ = w.Write(text) //nolint:gosec // a file of the build; an error means that the client has disconnected
	return nil
}

// Sum returns the hash of the sources of the page in a folder: names and content. The build has
// that of its sources, so a test without npm can tell that a build is outdated.
func Sum(folder fs.FS) (string, error) {
	names, err := fs.Glob(folder, "src/*")
	if err != nil {
		return "", err
	}
	names = append(names, "build.mjs", "generate.sh", "package.json", "package-lock.json", "tsconfig.json")
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return "", fmt.Errorf("hashing the page: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s\n", name, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
