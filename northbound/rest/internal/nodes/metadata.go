package nodes

import (
	"cmp"
	"fmt"
	"reflect"
)

// metadataFields returns the fields of metadata by their names in JSON, with their values as text: metadata
// of a descriptor is a struct, or a single value, which gets the name "value". Fields that are
// zero are left out, like unexported ones; lists have a text for each element.
func metadataFields(meta any) map[string][]string {
	v := reflect.ValueOf(meta)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid() || v.IsZero() && v.Kind() != reflect.Struct && !isNumber(v):
		return nil
	case v.Kind() != reflect.Struct:
		return map[string][]string{"value": texts(v)}
	}
	out := map[string][]string{}
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() && !v.Field(i).IsZero() {
			out[cmp.Or(field.Tag.Get("json"), field.Name)] = texts(v.Field(i))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// isNumber reports whether zero is a value like any other.
func isNumber(v reflect.Value) bool { return v.CanInt() || v.CanUint() }

// texts returns the text of a value, or of each of its elements.
func texts(v reflect.Value) (out []string) {
	_, printable := reflect.TypeAssert[fmt.Stringer](v)
	if printable || v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return []string{fmt.Sprint(v.Interface())}
	}
	for i := range v.Len() {
		out = append(out, fmt.Sprint(v.Index(i).Interface()))
	}
	return out
}
