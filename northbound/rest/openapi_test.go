package rest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/details"
)

// TestOpenAPI has a library read the document, and finds each endpoint in it.
func TestOpenAPI(t *testing.T) {
	inWorld(t, func(w *world) {
		status, text := w.ask(http.MethodGet, "/openapi.json", "")
		if status != http.StatusOK {
			t.Fatal(status, text)
		}
		doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, e := range (&handler{}).endpoints() {
			if e.Method == http.MethodConnect {
				continue
			}
			item := doc.Paths.Value(e.Path)
			if item == nil || item.GetOperation(e.Method) == nil {
				t.Errorf("%s %s is missing", e.Method, e.Path)
				continue
			}
			op := item.GetOperation(e.Method)
			if ids[op.OperationID] {
				t.Errorf("two operations are %s", op.OperationID)
			}
			ids[op.OperationID] = true
			for _, a := range e.Known() {
				if op.Parameters.GetByInAndName("query", a.Name) == nil {
					t.Errorf("%s %s: the argument %s is missing", e.Method, e.Path, a.Name)
				}
			}
		}
	})
}

// TestAnswersFitTheirSchema checks answers of JSON against the schema of their endpoint.
func TestAnswersFitTheirSchema(t *testing.T) {
	inWorld(t, func(w *world) {
		w.life()
		_, text := w.ask(http.MethodGet, "/openapi.json", "")
		doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
		w.must(err)
		for path, url := range map[string]string{
			"/info/version": "", "/sources": "", "/scheduler/status": "", "/scheduler/txn-history": "", "/scheduler/graph-snapshot": "",
			"/scheduler/stats": "", "/readiness": "", "/liveness": "", "/log/list": "", "/dump/linux/v2/interfaces": "", "/dump/linux/v2/routes": "",
			"/scheduler/dump":    "/scheduler/dump?descriptor=interface",
			"/scheduler/explain": "/scheduler/explain?key=" + routePrefix + "10.9.0.0/16/if9", "/scheduler/flag-stats": "/scheduler/flag-stats?flag=descriptor",
			"/scheduler/values": "/scheduler/values?why=1", "/scheduler/value": "/scheduler/value?key=" + ifPrefix + "if1", "/scheduler/transactions": "",
			"/scheduler/operations": "/scheduler/operations?seq-num=1",
			"/metrics/{model}":      "/metrics/govppmux.stats", "/vpp/info": "", "/govppmux/stats": "", "/stats/configurator": "", "/stats/linux/interfaces": "",
		} {
			if url == "" {
				url = path
			}
			status, answer := w.ask(http.MethodGet, url, "")
			if status != http.StatusOK && path != "/readiness" {
				t.Errorf("%s: %d %s", url, status, answer)
				continue
			}
			var v any
			w.must(json.Unmarshal([]byte(answer), &v))
			schema := doc.Paths.Value(path).Get.Responses.Value("200").Value.Content.Get("application/json").Schema.Value
			if err := schema.VisitJSON(v); err != nil {
				t.Errorf("%s: %v", url, err)
			}
		}
	})
}

// TestDumpsHaveModels finds the model of each dump.
func TestDumpsHaveModels(t *testing.T) {
	for _, d := range details.Paths() {
		for _, model := range []string{d.Model, d.Also} {
			if _, ok := models.BuiltIn().ByName(model); !ok && model != "" {
				t.Errorf("%s: there is no model %s", d.Path, model)
			}
		}
	}
}
