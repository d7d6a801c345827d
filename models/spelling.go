package models

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// SpellFields makes the FieldErrors in err name fields as data spells them: "ipAddresses[1]" where
// the value is written in lowerCamelCase. A field that is missing in data, such as a required one, gets
// the spelling that most names in data have. data is the JSON that err is about.
//
// It changes the FieldErrors, so err must not be shared. The texts of errors that wrap them follow
// if these build their text on demand, as joins do; fmt.Errorf does not.
func SpellFields(err error, data []byte) {
	fields := fieldsOf(err)
	if len(fields) == 0 {
		return
	}
	s := spellingOf(data)
	for _, e := range fields {
		parts := strings.Split(e.Field, ".")
		for i, part := range parts {
			name, index, indexed := strings.Cut(part, "[")
			parts[i] = s.spell(name)
			if indexed {
				parts[i] += "[" + index
			}
		}
		e.Field = strings.Join(parts, ".")
	}
}

// A spelling is how a document spells the names of fields.
type spelling struct {
	names map[string]bool // as written, the first mostSpelled
	camel bool            // more names are in lowerCamelCase than with underscores
}

// mostSpelled is the largest number of names in a spelling. No message has as many fields.
const mostSpelled = 1000

// spellingOf collects the names in data, up to its first syntax error.
func spellingOf(data []byte) spelling {
	s := spelling{names: map[string]bool{}}
	balance := 0
	for d := scan(data); ; {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		if in, n := d.StackIndex(d.StackDepth()); in == '{' && n%2 == 1 && len(s.names) < mostSpelled {
			name := token.String()
			s.names[name] = true
			balance += style(name)
		}
	}
	s.camel = balance > 0
	return s
}

// scan returns a reader of the tokens of data, which it does not copy.
func scan(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// style is 1 for a name in lowerCamelCase, -1 for one with underscores, and 0 for one that is the
// same in both.
func style(name string) int {
	switch {
	case strings.Contains(name, "_"):
		return -1
	case strings.ToLower(name) != name:
		return 1
	}
	return 0
}

// spell returns the name of a field of a .proto file as the document has it.
func (s spelling) spell(name string) string {
	other := jsonName(name)
	if s.names[name] || !s.names[other] && !s.camel {
		return name
	}
	return other
}

// jsonName returns the lowerCamelCase of a name, as protobuf defines it: a letter behind an underscore
// is a capital.
func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words {
		if i > 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// nameIn returns the name of a field in lowerCamelCase or as in the .proto file.
func nameIn(fd protoreflect.FieldDescriptor, camel bool) string {
	if camel {
		return fd.JSONName()
	}
	return string(fd.Name())
}
