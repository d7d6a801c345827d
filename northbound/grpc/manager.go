package grpc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// manager is ligato.generic.ManagerService.
type manager struct {
	generic.UnimplementedManagerServiceServer
	*service
}

// SetConfig puts and deletes values, as one transaction.
func (m *manager) SetConfig(ctx context.Context, req *generic.SetConfigRequest) (*generic.SetConfigResponse, error) {
	values, err := m.updates(req.GetUpdates())
	if err != nil {
		return nil, err
	}
	replace := req.GetOverwriteAll()
	req.Reset()
	out, err := m.declare(ctx, values, replace, false)
	if err != nil {
		return nil, err
	}
	return m.results(ctx, out), nil
}

// updates returns the values of a request. A malformed item refuses the whole request:
// without its key, its error could not be reported later.
func (s *service) updates(items []*generic.UpdateItem) ([]orchestrator.Declared, error) {
	wrong := mistakes{effect: unchanged}
	out := make([]orchestrator.Declared, len(items))
	for i, u := range items {
		d, err := s.declaredOf(u.GetItem())
		if err != nil {
			wrong.add(fmt.Sprintf("updates[%d].item", i), err)
			continue
		}
		d.Labels = u.GetLabels()
		out[i] = d
	}
	return out, wrong.err()
}

// results returns the number of the transaction, where existing clients expect it: in the first result. The
// others are those of each value of the request, and then of each other value that a replacement removed. The
// result of a value that another source still declares says so, although this one has withdrawn it.
func (m *manager) results(ctx context.Context, of outcome) *generic.SetConfigResponse {
	out := &generic.SetConfigResponse{}
	if of.seq != "" {
		out.Results = append(out.Results, &generic.UpdateResult{Key: metaSeqNum, Status: &generic.ItemStatus{
			Status: kvscheduler.ValueState_NONEXISTENT.String(), Message: of.seq,
		}})
	}
	add := func(key string) *generic.ItemStatus {
		st := m.statusUnder(key, kvscheduler.ValueState_REMOVED)
		out.Results = append(out.Results, &generic.UpdateResult{Key: key, Status: st})
		return st
	}
	for _, v := range of.asked {
		if st := add(v.key); v.removal && st.Status != kvscheduler.ValueState_REMOVED.String() {
			m.nameSources(ctx, v.key, st)
		}
	}
	for _, key := range of.removed {
		add(key)
	}
	return out
}

// nameSources adds the sources that declare a key to its status. It is only a hint: without an
// answer, the state alone says that the value stays.
func (m *manager) nameSources(ctx context.Context, key string, st *generic.ItemStatus) {
	all, err := m.Layers.Declarations(ctx, key)
	if err != nil || len(all) == 0 {
		return
	}
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Source
	}
	text := "still declared by " + strings.Join(names, ", ")
	if st.Message != "" {
		text += "; " + st.Message
	}
	st.Message = text
}

// GetConfig returns the values that take effect, of all sources.
func (m *manager) GetConfig(ctx context.Context, req *generic.GetConfigRequest) (*generic.GetConfigResponse, error) {
	if len(req.GetIds()) > 0 && len(req.GetLabels()) > 0 {
		return nil, status.Error(codes.InvalidArgument, "ids and labels: expected only one of them")
	}
	keys, err := m.keysOf(req.GetIds())
	if err != nil {
		return nil, err
	}
	all, err := m.Layers.Effective(ctx, keys...)
	if err != nil {
		return nil, m.failure(err)
	}
	all = slices.DeleteFunc(all, func(v orchestrator.Effective) bool { return !hasLabels(v.Labels, req.GetLabels()) })
	a := m.newAnswer()
	for _, v := range all {
		if err := a.add(v.Message); err != nil {
			return nil, m.failure(err)
		}
	}
	if err := m.begin(ctx, a); err != nil {
		return nil, m.failure(err)
	}
	out := &generic.GetConfigResponse{}
	for _, v := range all {
		item, err := m.itemOf(v.Key, v.Message)
		if err != nil {
			return nil, m.failure(err)
		}
		if item != nil {
			out.Items = append(out.Items, &generic.ConfigItem{Item: item, Status: m.statusUnder(v.Key, kvscheduler.ValueState_NONEXISTENT), Labels: v.Labels})
		}
	}
	return out, nil
}

// keysOf returns the keys of ids; nil: there are none.
func (s *service) keysOf(ids []*generic.Item_ID) (keys []string, err error) {
	var wrong mistakes
	for i, id := range ids {
		key, err := s.keyOf(id)
		if err != nil {
			wrong.add(fmt.Sprintf("ids[%d]", i), err)
		}
		keys = append(keys, key)
	}
	return keys, wrong.err()
}

// hasLabels reports whether labels meet all conditions. A condition is a label with its value; "" stands for
// any value. A key that begins with "!" excludes what has this label.
func hasLabels(labels, conditions map[string]string) bool {
	for key, value := range conditions {
		key, excludes := strings.CutPrefix(key, "!")
		got, has := labels[key]
		if (has && (value == "" || got == value)) == excludes {
			return false
		}
	}
	return true
}

// DumpState returns the values that are applied, as the scheduler knows them.
func (m *manager) DumpState(ctx context.Context, req *generic.DumpStateRequest) (*generic.DumpStateResponse, error) {
	keys, err := m.keysOf(req.GetIds())
	if err != nil {
		return nil, err
	}
	applied := slices.DeleteFunc(m.statuses(keys), func(st *scheduler.Status) bool { return st.Actual == nil || st.Base != "" })
	a := m.newAnswer()
	for _, st := range applied {
		if err := a.add(st.Actual); err != nil {
			return nil, m.failure(err)
		}
	}
	if err := m.begin(ctx, a); err != nil {
		return nil, m.failure(err)
	}
	out := &generic.DumpStateResponse{}
	for _, st := range applied {
		item, err := m.itemOf(st.Key, st.Actual)
		if err != nil {
			return nil, m.failure(err)
		}
		if item != nil {
			out.Items = append(out.Items, &generic.StateItem{Item: item})
		}
	}
	return out, nil
}

// statuses returns the statuses of the keys, or of all values of models if keys is nil,
// sorted by key.
func (m *manager) statuses(keys []string) (out []*scheduler.Status) {
	if keys == nil {
		for st := range m.Scheduler.All() {
			if _, _, ok := m.models().ByKey(st.Key); ok {
				out = append(out, st)
			}
		}
	}
	for _, key := range keys {
		if st, ok := m.Scheduler.Status(key); ok {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b *scheduler.Status) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(out, func(a, b *scheduler.Status) bool { return a.Key == b.Key })
}
