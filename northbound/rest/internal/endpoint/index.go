package endpoint

import (
	"html/template"
	"net/http"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
)

// page is the template of the index.
const page = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>agent</title>
<style>body{font-family:sans-serif;margin:2em} td{padding:.2em 1em .2em 0;vertical-align:top} code{white-space:nowrap}</style>
</head>
<body>
<h1>agent</h1>
<table>
{{range .}}<tr><td>{{.Method}}</td><td>{{if eq .Method "GET"}}<a href="{{.Path}}"><code>{{.Path}}</code></a>{{else}}<code>{{.Path}}</code>{{end}}</td><td>{{.Arguments}}</td><td>{{.About}}</td></tr>
{{end}}</table>
</body>
</html>
`

// Index answers an HTML page with all paths.
func Index(w http.ResponseWriter, endpoints []Endpoint) error {
	type row struct{ Method, Path, Arguments, About string }
	var rows []row
	for _, e := range endpoints {
		rows = append(rows, row{e.Method, e.Path, e.Arguments, e.About})
	}
	t, err := template.New("index").Parse(page)
	if err != nil {
		return err
	}
	reply.Header(w, "text/html; charset=UTF-8", http.StatusOK)
	_ = t.Execute(w, rows) // an error means that the client has disconnected
	return nil
}
