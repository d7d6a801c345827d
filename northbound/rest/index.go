package rest

import (
	"html/template"
	"net/http"
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

// index answers an HTML page with all paths.
func (h *handler) index(w http.ResponseWriter, _ *http.Request, _ query) error {
	type row struct{ Method, Path, Arguments, About string }
	var rows []row
	for _, e := range h.endpoints() {
		rows = append(rows, row{e.method, e.path, e.arguments, e.about})
	}
	t, err := template.New("index").Parse(page)
	if err != nil {
		return err
	}
	header(w, "text/html; charset=UTF-8", http.StatusOK)
	_ = t.Execute(w, rows) // an error means that the client has disconnected
	return nil
}
