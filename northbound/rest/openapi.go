package rest

import (
	"cmp"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// openAPI answers the OpenAPI document. It comes from the table of endpoints, so it names
// the paths that this agent serves.
func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request, _ query) error {
	return replyJSON(w, h.openAPIDocument())
}

// object is a JSON object. encoding/json sorts its keys.
type object = map[string]any

// openAPIDocument describes all endpoints in OpenAPI 3.0.
func (h *handler) openAPIDocument() object {
	s := schemas{object{}}
	paths := object{}
	for _, e := range h.endpoints() {
		if e.method == http.MethodConnect {
			continue // OpenAPI has no such method
		}
		methods, _ := paths[e.path].(object)
		if methods == nil {
			methods = object{}
			paths[e.path] = methods
		}
		methods[strings.ToLower(e.method)] = s.operation(e)
	}
	out := object{
		"openapi": "3.0.3",
		"info": object{
			"title": "keyplane", "version": cmp.Or(h.Version.Version, "unknown"),
			"description": "The HTTP API of the agent. docs/rest.md explains it.",
		},
		"paths": paths,
		"components": object{
			"schemas": s.named,
			"securitySchemes": object{
				"basic": object{"type": "http", "scheme": "basic"}, "token": object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
			},
		},
	}
	if h.guard != nil {
		out["security"] = []any{object{"basic": []any{}}, object{"token": []any{}}}
	}
	return out
}

// pathParameter matches a parameter in a path.
var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

// operation describes one endpoint.
func (s schemas) operation(e endpoint) object {
	parameters := []any{}
	for _, m := range pathParameter.FindAllStringSubmatch(e.path, -1) {
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, a := range e.known() {
		schema := object{"type": "string"}
		if a.words != nil {
			schema["enum"] = a.words
		}
		if a.many {
			schema = object{"type": "array", "items": schema}
		}
		parameters = append(parameters, object{"name": a.name, "in": "query", "schema": schema})
	}
	out := object{
		"summary": e.about, "operationId": operationID(e), "parameters": parameters,
		"responses": object{
			"200":     object{"description": e.about, "content": object{cmp.Or(e.media, jsonMedia): object{"schema": s.answer(e)}}},
			"default": object{"description": "an error", "content": object{jsonMedia: object{"schema": s.of(reflect.TypeFor[wire.Failure]())}}},
		},
	}
	if e.group == groupOpen {
		out["security"] = []any{}
	} else if e.group != groupAny {
		out["description"] = "Users need the permission " + string(e.group) + "."
	}
	if e.body != "" {
		out["requestBody"] = object{"required": e.method != http.MethodDelete, "content": object{e.body: object{"schema": object{}}}}
	}
	return out
}

// operationID returns a name for functions of generated clients: getSchedulerDump.
func operationID(e endpoint) string {
	var out strings.Builder
	out.WriteString(strings.ToLower(e.method))
	for _, word := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(e.path, -1) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// answer returns the schema of an answer: that of its type, or of a text.
func (s schemas) answer(e endpoint) object {
	if e.shape == nil {
		return object{"type": "string"}
	}
	return s.of(reflect.TypeOf(e.shape))
}

// schemas collects the schemas of named types.
type schemas struct{ named object }

// of returns the schema of a type as encoding/json writes it.
func (s schemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[wire.Flags]():
		return object{"type": "object", "additionalProperties": object{}}
	case t.Implements(reflect.TypeFor[proto.Message]()), t.Kind() == reflect.Interface, t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return object{"nullable": true} // any JSON: the .proto files define values
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"nullable": true, "allOf": []any{s.of(t.Elem())}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "nullable": true, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "nullable": true, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	default:
		return object{"type": "integer"}
	}
}

// structure returns the schema of a struct. A named one becomes a component.
func (s schemas) structure(t reflect.Type) object {
	if t.Name() != "" {
		if _, known := s.named[t.Name()]; !known {
			s.named[t.Name()] = object{} // before its fields: they may refer to it
			s.named[t.Name()] = s.fields(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	return s.fields(t)
}

// fields returns the schema of a struct with its fields.
func (s schemas) fields(t reflect.Type) object {
	properties, required := object{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
		properties[name] = s.of(f.Type)
		if options == "" && f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.Slice && f.Type.Kind() != reflect.Map {
			required = append(required, name)
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
