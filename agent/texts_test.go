package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
)

// TestErrorsKeepNoLargeTexts gives each field of each model a large text. The error of a value is kept
// as long as the value is invalid, so it must not hold what the value had.
func TestErrorsKeepNoLargeTexts(t *testing.T) {
	s := describedScheduler(t)
	large := strings.Repeat("x", 32<<10)
	texts := 0
	for _, one := range allSamples(t) {
		m, key, v := one.model, one.key, one.value
		for _, path := range textsIn(v.ProtoReflect(), nil) {
			texts++
			changed := proto.Clone(v)
			replaceText(changed.ProtoReflect(), path, large)
			data, err := m.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Decode(key, data)
			checkTexts(t, fmt.Sprint(m.Name(), path), err)
			if made, keyErr := m.Key(changed); keyErr == nil && made != key {
				_, err = s.Decode(made, data)
				checkTexts(t, fmt.Sprint(m.Name(), path, " in its key"), err)
			}
		}
		for field := range v.ProtoReflect().Range {
			for _, format := range []string{`{"%s":"%s"}`, `{"%s":{"%s":1}}`, `{"%s":["%s"]}`, `{"%s":0,"%s":0}`} {
				_, err := s.Decode(key, fmt.Appendf(nil, format, field.Name(), large))
				checkTexts(t, fmt.Sprintf("%s, %s in %s", m.Name(), field.Name(), format), err)
			}
		}
	}
	if texts < 100 {
		t.Errorf("%d texts were made large; expected those of all models", texts)
	}
}

// checkTexts reports an error that holds a large text.
func checkTexts(t *testing.T, what string, err error) {
	t.Helper()
	const most = 5 << 10
	if err == nil {
		return
	}
	if text := err.Error(); len(text) > most {
		t.Errorf("%s: an error of %d bytes: %.200s", what, len(text), text)
		return
	}
	if field, ok := err.(*models.FieldError); ok {
		for _, part := range []any{field.Field, field.Value, field.Expected} {
			if text := fmt.Sprint(part); len(text) > most {
				t.Errorf("%s: the error of %.80s holds a text of %d bytes", what, field.Field, len(text))
			}
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		checkTexts(t, what, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			checkTexts(t, what, one)
		}
	}
}

// textsIn returns the paths of the texts in m and below.
func textsIn(m protoreflect.Message, at fieldPath) (out []fieldPath) {
	for field, v := range m.Range {
		path := slices.Concat(at, fieldPath{field})
		switch {
		case field.IsMap():
		case field.Kind() == protoreflect.StringKind:
			out = append(out, path)
		case field.Message() == nil:
		case field.IsList():
			out = append(out, textsIn(v.List().Get(0).Message(), path)...)
		default:
			out = append(out, textsIn(v.Message(), path)...)
		}
	}
	return out
}

// replaceText sets the text at a path.
func replaceText(m protoreflect.Message, path fieldPath, text string) {
	field := path[0]
	switch {
	case len(path) > 1 && field.IsList():
		replaceText(m.Get(field).List().Get(0).Message(), path[1:], text)
	case len(path) > 1:
		replaceText(m.Get(field).Message(), path[1:], text)
	case field.IsList():
		m.Mutable(field).List().Set(0, protoreflect.ValueOfString(text))
	default:
		m.Set(field, protoreflect.ValueOfString(text))
	}
}
