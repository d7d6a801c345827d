package structured

import (
	"bytes"
	"slices"

	"github.com/keyplane/keyplane/internal/nearest"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured/document"
)

// salvage returns the key of an invalid value if the fields of the key are valid,
// and "" otherwise. With the key, the agent knows that the value is invalid and not
// removed, and keeps the previous one.
func salvage(budget *document.Budget, m *models.Model, fields []document.Field) string {
	if m.Singleton() {
		return m.Prefix()
	}
	names := m.KeyFields()
	var object bytes.Buffer
	sep := byte('{')
	for _, f := range fields {
		fd := shapeOf(m).field(f.Name)
		if fd == nil && nearest.Word(f.Name, names) != "" {
			return "" // probably a field of the key
		}
		if fd == nil || !slices.Contains(names, string(fd.Name())) {
			continue
		}
		value, _, err := budget.JSONOf(f.Value, shapeOf(m).Field(f.Name))
		if err != nil {
			return ""
		}
		object.WriteByte(sep)
		sep = ','
		object.WriteString(`"` + f.Name + `":`)
		object.Write(value)
	}
	if sep == '{' {
		return ""
	}
	object.WriteByte('}')
	v, err := m.Unmarshal(object.Bytes())
	if err != nil {
		return ""
	}
	key, err := m.Key(v)
	if err != nil {
		return ""
	}
	return key
}
