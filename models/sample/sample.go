// Package sample makes values that show a model: every field that can be set is set, with
// plausible values that agents accept.
//
//	v := sample.Of(m)      // the value to show
//	all := sample.All(m)   // it, and values with the fields that exclude some of its fields
//
// The samples of the built-in models are written by hand, in samples.yaml, because most models
// have fields that exclude or imply others. For a model of another program the type of each
// field, its hints and its name make the value; that program may still refuse it.
//
// Values belong to the caller. Tests: every field of each built-in model is in a sample of it,
// and the descriptors of the agent accept each sample (package agent).
package sample

import (
	_ "embed"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

//go:embed samples.yaml
var text []byte

// written are the samples in the file, by the name of the model. Nobody changes them: Of and All
// return copies.
var written = sync.OnceValues(func() (map[string][]proto.Message, error) { return read(text) })

// Of returns the sample of m. It has as many fields as can be set at once.
func Of(m *models.Model) (proto.Message, error) {
	all, err := All(m)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// All returns the sample of m, and further values that have the other fields. There is at least
// one value.
func All(m *models.Model) ([]proto.Message, error) {
	known, err := written()
	if err != nil {
		return nil, err
	}
	ours := known[m.Name()]
	if len(ours) == 0 || ours[0].ProtoReflect().Type() != m.New().ProtoReflect().Type() {
		return []proto.Message{made(m)}, nil
	}
	out := make([]proto.Message, len(ours))
	for i, v := range ours {
		out[i] = proto.Clone(v)
	}
	return out, nil
}

// read returns the values of a text, by model. The text is part of the program, so a mistake in
// it is an error that the tests find.
func read(text []byte) (map[string][]proto.Message, error) {
	items, errs := structured.For(models.BuiltIn()).Parse(text, document.YAML)
	if len(errs) > 0 {
		return nil, fmt.Errorf("samples.yaml:%w", errs[0])
	}
	out := map[string][]proto.Message{}
	for _, it := range items {
		if it.Err != nil {
			return nil, fmt.Errorf("samples.yaml:%w", it.Err)
		}
		v, err := it.Model.Unmarshal(it.Value)
		if err != nil {
			return nil, fmt.Errorf("samples.yaml:%d: %w", it.Line, err)
		}
		out[it.Model.Name()] = append(out[it.Model.Name()], v)
	}
	return out, nil
}
