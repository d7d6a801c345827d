package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// messageOf returns the value of an item. Fields of a later release are left out.
func messageOf(r *models.Registry, item *generic.Item) (proto.Message, error) {
	packed := item.GetData().GetAny()
	name := packed.GetTypeUrl()
	m, ok := r.ByMessage(protoreflect.FullName(name[strings.LastIndexByte(name, '/')+1:]))
	if !ok {
		return nil, fmt.Errorf("value %s of %s: %w of the message %q", item.GetId().GetName(), item.GetId().GetModel(), models.ErrNoModel, name)
	}
	v := m.New()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(packed.GetValue(), v); err != nil {
		return nil, fmt.Errorf("value %s of %s: %w", item.GetId().GetName(), m.Name(), err)
	}
	return v, nil
}

// fieldsOf returns a message as the formats of -f see it: its fields by their names in JSON.
func fieldsOf(m proto.Message) (out any, err error) {
	text, err := models.JSON(m)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &out)
	return out, err
}
