package grpc

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// typeURL is the start of the type of each value on the wire.
const typeURL = "models.ligato.io/"

// declaredOf returns the value, or the removal, that an item means.
func (s *service) declaredOf(item *generic.Item) (d orchestrator.Declared, err error) {
	id, packed := item.GetId(), item.GetData().GetAny()
	if packed == nil {
		if id == nil {
			return d, errors.New("it has neither id nor data")
		}
		d.Key, err = s.keyOf(id)
		return d, err
	}
	value, model, err := s.unpack(packed)
	if err != nil {
		return d, err
	}
	d.Key, err = model.Key(value)
	if err != nil {
		return d, err
	}
	if m := id.GetModel(); m != "" && m != model.Name() {
		return d, fmt.Errorf("id.model is %q, but data is a value of %q", m, model.Name())
	}
	if name := id.GetName(); name != "" && model.KeyOf(name) != d.Key {
		made, _ := model.NameOf(d.Key)
		return d, fmt.Errorf("id.name is %q, but data makes the name %q", name, made)
	}
	d.Message = value
	return d, models.CheckSecrets(value)
}

// unpack returns the value in an Any. Only the name after the last slash of its type counts.
func (s *service) unpack(packed *anypb.Any) (proto.Message, *models.Model, error) {
	name := messageName(packed.GetTypeUrl())
	model, ok := s.models().ByMessage(name)
	if !ok {
		return nil, nil, fmt.Errorf("data.any.type_url is %.80q: %w; expected %q and a message of a model", packed.GetTypeUrl(), models.ErrNoModel, typeURL)
	}
	value := model.New()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(packed.GetValue(), value); err != nil {
		return nil, nil, fmt.Errorf("data.any.value is no %s: %w", name, err)
	}
	return value, model, nil
}

// keyOf returns the key that an id means.
func (s *service) keyOf(id *generic.Item_ID) (string, error) {
	model, ok := s.models().ByName(id.GetModel())
	if !ok {
		return "", fmt.Errorf("id.model is %.80q: %w; MetaService.KnownModels lists them", id.GetModel(), models.ErrNoModel)
	}
	key := model.KeyOf(id.GetName())
	if name, ok := model.NameOf(key); !ok || !model.Singleton() && name == "" {
		return "", fmt.Errorf("id.name is %.80q: expected the name of a value of %s", id.GetName(), model.Name())
	}
	return key, nil
}

// itemOf returns the item of a value, or nil if its key has no model.
func (s *service) itemOf(key string, value proto.Message) (*generic.Item, error) {
	model, name, ok := s.models().ByKey(key)
	if !ok {
		return nil, nil
	}
	item := &generic.Item{Id: &generic.Item_ID{Model: model.Name(), Name: name}}
	if value == nil {
		return item, nil
	}
	if !s.secrets {
		value = models.Redacted(value)
	}
	data, err := marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	item.Data = &generic.Data{Union: &generic.Data_Any{Any: &anypb.Any{
		TypeUrl: typeURL + string(value.ProtoReflect().Descriptor().FullName()), Value: data,
	}}}
	return item, nil
}

// statusOf returns the state of a value and the reason for it: the error, or the unmet
// dependencies.
func statusOf(st *scheduler.Status) *generic.ItemStatus {
	out := &generic.ItemStatus{Status: st.State.String(), Message: strings.Join(st.Details, ", ")}
	if st.Err != nil {
		out.Message = st.Err.Error()
	}
	return out
}

// statusUnder is statusOf for a key; gone is the state of a value that does not exist.
func (s *service) statusUnder(key string, gone kvscheduler.ValueState) *generic.ItemStatus {
	st, ok := s.Scheduler.Status(key)
	if !ok {
		return &generic.ItemStatus{Status: gone.String()}
	}
	return statusOf(st)
}
