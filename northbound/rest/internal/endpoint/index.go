package endpoint

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// Parts of the page before and after the rows.
const (
	pageBegin = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>agent</title>
<style>body{font-family:sans-serif;margin:2em} td{padding:.2em 1em .2em 0;vertical-align:top} code{white-space:nowrap}</style>
</head>
<body>
<h1>agent</h1>
<table>
`
	pageEnd = `</table>
</body>
</html>
`
)

// Index answers an HTML page with all paths. It uses no template: the linker of a program that
// executes templates keeps every exported method of every type, in case a template names it.
func Index(w http.ResponseWriter, endpoints []Endpoint) {
	var page strings.Builder
	page.WriteString(pageBegin)
	for _, e := range endpoints {
		code := "<code>" + html.EscapeString(e.Path) + "</code>"
		if e.Method == http.MethodGet {
			link := url.URL{Path: e.Path}
			code = `<a href="` + html.EscapeString(link.EscapedPath()) + `">` + code + "</a>"
		}
		fmt.Fprintf(&page, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			html.EscapeString(e.Method), code, html.EscapeString(e.Arguments), html.EscapeString(e.About))
	}
	page.WriteString(pageEnd)
	reply.Page(w, "text/html; charset=UTF-8")
	_, _ = w.Write([]byte(page.String())) // an error means that the client has disconnected
}
