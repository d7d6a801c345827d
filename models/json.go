package models

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MaxSize is the maximum size of a value as JSON, in bytes. It is several times the limit
// of the stores, and prevents that a large unrelated file is parsed.
const MaxSize = 4 << 20

// Marshal returns v as the stores hold it: one line of JSON, fields by their proto names,
// enums by name, 64-bit numbers as text, without defaults. Equal values give equal bytes.
func (m *Model) Marshal(v proto.Message) ([]byte, error) {
	if !m.is(v) {
		return nil, fmt.Errorf("%w: %T is not a value of %s", ErrNoModel, v, m.Name())
	}
	out, err := JSON(v)
	if err != nil {
		return nil, fmt.Errorf("value of %s: %w", m.Name(), err)
	}
	return out, nil
}

// JSON is [Model.Marshal] for messages without a model, too.
func JSON(v proto.Message) ([]byte, error) {
	return compact(protojson.MarshalOptions{UseProtoNames: true}, v)
}

// CamelCaseJSON is [JSON] with the names of fields in lowerCamelCase, which protobuf has by default.
func CamelCaseJSON(v proto.Message) ([]byte, error) { return compact(protojson.MarshalOptions{}, v) }

// AllFieldsJSON is [JSON] with the fields that v does not have, too: with their defaults, and null for a
// message. Of a oneof it has only what v has.
func AllFieldsJSON(v proto.Message) ([]byte, error) {
	return compact(protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}, v)
}

// compact returns v as one line of JSON.
func compact(o protojson.MarshalOptions, v proto.Message) ([]byte, error) {
	// protojson keeps the order of fields, but inserts random spaces.
	spaced, err := o.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(len(spaced))
	if err := json.Compact(&out, spaced); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Unmarshal parses a value from JSON: fields by proto name or in lowerCamelCase, enums by
// name or number, 64-bit numbers as text or number, null as absent. Unknown fields are
// errors.
//
// Errors are [ErrTooLarge], [ErrNotJSON], and a [FieldError] for each of the first few
// invalid fields, with the fields as data spells them. A list with more than [MaxEntries]
// entries is reported alone. If control characters in texts are the only problem (see [Check]),
// the message is returned too. It does not alias data.
func (m *Model) Unmarshal(data []byte) (proto.Message, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes: expected at most %d", ErrTooLarge, len(data), MaxSize)
	}
	if err := fewEntries(data); err != nil {
		return nil, err
	}
	v := m.New()
	if err := protojson.Unmarshal(data, v); err != nil {
		return nil, diagnose(data, m.message(), err)
	}
	if mayHoldControls(data) {
		err := Check(v)
		SpellFields(err, data)
		return v, err
	}
	return v, nil
}
