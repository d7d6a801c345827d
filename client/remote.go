package client

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// NewRemote returns a client over a connection, which stays the caller's.
func NewRemote(conn grpc.ClientConnInterface, o Options) Client {
	o.Models = cmp.Or(o.Models, models.BuiltIn())
	return &remote{o, generic.NewManagerServiceClient(conn)}
}

type remote struct {
	Options
	manager generic.ManagerServiceClient
}

func (r *remote) Put(ctx context.Context, values ...proto.Message) error {
	return r.declare(ctx, false, Put(values...))
}

func (r *remote) Delete(ctx context.Context, values ...proto.Message) error {
	return r.declare(ctx, false, Delete(values...))
}

func (r *remote) Replace(ctx context.Context, values ...proto.Message) error {
	return r.declare(ctx, true, Put(values...))
}

func (r *remote) Commit(ctx context.Context, changes ...Change) error {
	return r.declare(ctx, false, changes...)
}

// declare makes one transaction of changes.
func (r *remote) declare(ctx context.Context, replace bool, changes ...Change) error {
	req := &generic.SetConfigRequest{OverwriteAll: replace}
	err := declared(r.Models, changes, func(key string, m proto.Message) error {
		item := &generic.Item{Id: r.id(key)}
		if m != nil {
			data, err := proto.Marshal(m)
			if err != nil {
				return fmt.Errorf("value of %s: %w", item.GetId().GetModel(), err)
			}
			name := m.ProtoReflect().Descriptor().FullName()
			item.Data = &generic.Data{Union: &generic.Data_Any{Any: &anypb.Any{TypeUrl: "models.ligato.io/" + string(name), Value: data}}}
		}
		req.Updates = append(req.Updates, &generic.UpdateItem{Item: item})
		return nil
	})
	if err != nil {
		return err
	}
	if r.Source != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "datasrc", r.Source)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "revert", strconv.FormatBool(r.Revert))
	_, err = r.manager.SetConfig(ctx, req)
	return remoteError(err)
}

// ids returns the identities of values.
func (r *remote) ids(values []proto.Message) (out []*generic.Item_ID, err error) {
	keys, err := keysOf(r.Models, values)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		out = append(out, r.id(key))
	}
	return out, nil
}

// id returns the identity of the value of a key that keysOf returned.
func (r *remote) id(key string) *generic.Item_ID {
	m, name, _ := r.Models.ByKey(key)
	return &generic.Item_ID{Model: m.Name(), Name: name}
}

// remoteError returns the values that a status names, as an *Error.
func remoteError(err error) error {
	st, _ := status.FromError(err)
	out := &Error{err: err}
	for _, d := range st.Details() {
		if v, ok := d.(*kvscheduler.ValueStatus); ok {
			out.Failed = append(out.Failed, Failure{Status{v.GetKey(), v.GetState(), v.GetError()}, v.GetDetails()})
		}
	}
	switch {
	case len(out.Failed) == 0:
		return err
	case st.Code() == codes.FailedPrecondition:
		out.err = nil // its text has the same values
	}
	return out
}

// Wait implements [Client]. It watches the states over the connection: if the connection
// is lost, it returns the error of gRPC and does not connect again.
func (r *remote) Wait(ctx context.Context, values ...proto.Message) error {
	keys, err := keysOf(r.Models, values)
	if err != nil {
		return err
	}
	return await(ctx, keys, r.Watch(ctx, values...))
}

// Get implements [Client].
func (r *remote) Get(ctx context.Context, values ...proto.Message) (out []Value, err error) {
	ids, err := r.ids(values)
	if err != nil {
		return nil, err
	}
	answer, err := r.manager.GetConfig(ctx, &generic.GetConfigRequest{Ids: ids})
	for _, item := range answer.GetItems() {
		if out, err = r.appendValue(out, item.GetItem()); err != nil {
			return nil, err
		}
	}
	return out, err
}

// Dump implements [Client].
func (r *remote) Dump(ctx context.Context, values ...proto.Message) (out []Value, err error) {
	ids, err := r.ids(values)
	if err != nil {
		return nil, err
	}
	answer, err := r.manager.DumpState(ctx, &generic.DumpStateRequest{Ids: ids})
	for _, item := range answer.GetItems() {
		if out, err = r.appendValue(out, item.GetItem()); err != nil {
			return nil, err
		}
	}
	return out, err
}

// appendValue appends the value of an item. Items of models that the client does not know
// are left out.
func (r *remote) appendValue(out []Value, item *generic.Item) ([]Value, error) {
	packed := item.GetData().GetAny()
	name := packed.GetTypeUrl()
	m, ok := r.Models.ByMessage(protoreflect.FullName(name[strings.LastIndexByte(name, '/')+1:]))
	if !ok {
		return out, nil
	}
	v := m.New()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(packed.GetValue(), v); err != nil {
		return nil, fmt.Errorf("value %s of %s: %w", item.GetId().GetName(), m.Name(), err)
	}
	return append(out, Value{m.KeyOf(item.GetId().GetName()), v}), nil
}

// Status implements [Client].
func (r *remote) Status(ctx context.Context, values ...proto.Message) ([]Status, error) {
	keys, err := keysOf(r.Models, values)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	found := map[string]Status{}
	for st, err := range r.states(ctx, true, values) {
		if err != nil {
			return nil, err
		}
		if st == (Status{}) {
			break
		}
		found[st.Key] = st
	}
	out := make([]Status, len(keys))
	for i, key := range keys {
		out[i] = found[key]
		out[i].Key = key
	}
	return out, nil
}

// statusOf converts a state of the server. It returns false for an item of a model that
// this client does not know: an agent with more models must not break older clients.
func (r *remote) statusOf(id *generic.Item_ID, st *generic.ItemStatus) (Status, bool) {
	m, ok := r.Models.ByName(id.GetModel())
	if !ok {
		return Status{}, false
	}
	return Status{m.KeyOf(id.GetName()), kvscheduler.ValueState(kvscheduler.ValueState_value[st.GetStatus()]), st.GetMessage()}, true
}

// Watch implements [Client].
func (r *remote) Watch(ctx context.Context, values ...proto.Message) iter.Seq2[Status, error] {
	return r.states(ctx, false, values)
}

// mostIDs is the number of values that a subscription names. One to more values names their models,
// because the server bounds the memory of such requests.
const mostIDs = 500

// states yields the present states of values, or of all without values, and then each change. If
// marked, the zero Status follows each time when all states are known.
func (r *remote) states(ctx context.Context, marked bool, values []proto.Message) iter.Seq2[Status, error] {
	return func(yield func(Status, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the stream
		if marked {
			ctx = metadata.AppendToOutgoingContext(ctx, "resume", "")
		}
		ids, err := r.ids(values)
		wanted := func(string) bool { return true }
		if len(ids) > mostIDs {
			ids, wanted = r.wholeModels(ids)
		}
		req := &generic.SubscribeRequest{}
		for _, id := range ids {
			req.Subscriptions = append(req.Subscriptions, &generic.Subscription{Id: id})
		}
		var stream grpc.ServerStreamingClient[generic.SubscribeResponse]
		if err == nil {
			stream, err = r.manager.Subscribe(ctx, req)
		}
		for err == nil {
			var got *generic.SubscribeResponse
			got, err = stream.Recv()
			for _, n := range got.GetNotifications() {
				st, ok := r.statusOf(n.GetItem().GetId(), n.GetStatus())
				mark := n.GetItem().GetId().GetModel() == ""
				if (mark || ok && wanted(st.Key)) && !yield(st, nil) {
					return
				}
			}
		}
		yield(Status{}, err)
	}
}

// wholeModels returns the identities of whole models instead of those of values, and which keys are theirs.
func (r *remote) wholeModels(of []*generic.Item_ID) (whole []*generic.Item_ID, wanted func(key string) bool) {
	keys, names := map[string]bool{}, map[string]bool{}
	for _, id := range of {
		m, _ := r.Models.ByName(id.GetModel())
		keys[m.KeyOf(id.GetName())] = true
		names[id.GetModel()] = true
	}
	for name := range names {
		whole = append(whole, &generic.Item_ID{Model: name})
	}
	return whole, func(key string) bool { return keys[key] }
}
