package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
)

// typeURL is the start of the type of each value on the wire.
const typeURL = "models.ligato.io/"

// itemOf returns the item of a value, without data for a removal.
func itemOf(r *models.Registry, v documents.Value) (*generic.Item, error) {
	m, name, ok := r.ByKey(v.Key)
	if !ok {
		return nil, fmt.Errorf("%s: %w", v.Key, models.ErrNoModel)
	}
	item := &generic.Item{Id: &generic.Item_ID{Model: m.Name(), Name: name}}
	if v.Message == nil {
		return item, nil
	}
	data, err := proto.Marshal(v.Message)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Key, err)
	}
	item.Data = &generic.Data{Union: &generic.Data_Any{Any: &anypb.Any{TypeUrl: typeURL + m.ProtoName(), Value: data}}}
	return item, nil
}

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
