package endpoint

import (
	"cmp"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// object is a JSON object. encoding/json sorts its keys.
type object = map[string]any

// OpenAPI returns the OpenAPI 3.0 document of the endpoints, for encoding/json. It names the
// paths that this agent serves. secured means that the server has users.
func OpenAPI(version string, secured bool, endpoints []Endpoint) map[string]any {
	s := schemas{object{}}
	paths := object{}
	for _, e := range endpoints {
		if e.Method == http.MethodConnect {
			continue // OpenAPI has no such method
		}
		methods, _ := paths[e.Path].(object)
		if methods == nil {
			methods = object{}
			paths[e.Path] = methods
		}
		methods[strings.ToLower(e.Method)] = s.operation(e)
	}
	out := object{
		"openapi": "3.0.3",
		"info": object{
			"title": "keyplane", "version": cmp.Or(version, "unknown"),
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
	if secured {
		out["security"] = []any{object{"basic": []any{}}, object{"token": []any{}}}
	}
	return out
}

// pathParameter matches a parameter in a path.
var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

// operation describes one endpoint.
func (s schemas) operation(e Endpoint) object {
	parameters := []any{}
	for _, m := range pathParameter.FindAllStringSubmatch(e.Path, -1) {
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, a := range e.Known() {
		schema := object{"type": "string"}
		if a.Words != nil {
			schema["enum"] = a.Words
		}
		if a.Many {
			schema = object{"type": "array", "items": schema}
		}
		parameters = append(parameters, object{"name": a.Name, "in": "query", "schema": schema})
	}
	out := object{
		"summary": e.About, "operationId": operationID(e), "parameters": parameters,
		"responses": object{
			"200":     object{"description": e.About, "content": object{cmp.Or(e.Media, reply.JSONMedia): object{"schema": s.answer(e)}}},
			"default": object{"description": "an error", "content": object{reply.JSONMedia: object{"schema": s.of(reflect.TypeFor[wire.Failure]())}}},
		},
	}
	if e.Group == Open {
		out["security"] = []any{}
	} else if e.Group != Any {
		out["description"] = "Users need the permission " + string(e.Group) + "."
	}
	if e.Body != "" {
		out["requestBody"] = object{"required": e.Method != http.MethodDelete, "content": object{e.Body: object{"schema": object{}}}}
	}
	return out
}

// operationID returns a name for functions of generated clients: getSchedulerDump. It must
// be unique in the document; the method and the words of the path make it so.
func operationID(e Endpoint) string {
	var out strings.Builder
	out.WriteString(strings.ToLower(e.Method))
	for _, word := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(e.Path, -1) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// answer returns the schema of an answer: that of its type, or of a text.
func (s schemas) answer(e Endpoint) object {
	if e.Shape == nil {
		return object{"type": "string"}
	}
	return s.of(reflect.TypeOf(e.Shape))
}

// schemas collects the schemas of named types. Types with a name become components of the
// document, so that generated clients have one type for each.
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

// fields returns the schema of a struct with its fields. Fields that may be absent are not
// required: those with options in their tag, pointers, lists and maps.
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
