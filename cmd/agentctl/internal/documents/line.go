package documents

import (
	"cmp"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A Line is a key with its value on one line of a file. Its mistakes are said as those of a document that has the pair.
type Line struct {
	File   string
	Number int    // from 1
	Column int    // of the value, from 1
	Key    string // as it is written there
	Short  string // without the agent's prefix
	Value  []byte // JSON
}

// Check returns what is wrong with the value; see [Documents.Check]. There are no warnings.
func (l Line) Check(r *models.Registry) []Finding {
	return l.placed(slices.DeleteFunc(l.document().Check(r), func(f Finding) bool { return f.Warning }))
}

// Refused returns the findings about the value, which the agent refuses; see [Documents.Refused].
func (l Line) Refused(i wire.Invalid) []Finding {
	i.Line = 0 // of the request
	return l.placed(l.document().Refused([]wire.Invalid{i}))
}

// document returns the line as a document.
func (l Line) document() Documents { return Of("", append(l.begin(), append(l.Value, '}')...)) }

// begin returns the part of the document before the value.
func (l Line) begin() []byte {
	key, err := json.Marshal(l.Short)
	if err != nil {
		key = []byte(`""`) // a text has no other form
	}
	return append(append([]byte(`- {"key": `), key...), `, "value": `...)
}

// placed brings findings about the document to the place in the file.
func (l Line) placed(all []Finding) []Finding {
	before := utf8.RuneCount(l.begin())
	for i := range all {
		f := &all[i]
		column := 1 // the key
		if f.Column > before {
			column = f.Column - before + l.Column - 1
		}
		f.File, f.Line, f.Column, f.Key = l.File, l.Number, column, cmp.Or(l.Key, f.Key)
	}
	return all
}
