package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// Views of a dump: the actual state read back now (SB), the declared values (NB),
// and the actual state as recorded by the scheduler.
const (
	viewSB     = "SB"
	viewNB     = "NB"
	viewCached = "cached"
)

// dump answers the values of a descriptor, or without arguments the list of
// descriptors. Only the view SB reads the southbound; the others are snapshots.
func (h *handler) dump(w http.ResponseWriter, r *http.Request, q endpoint.Query) error {
	view, err := q.Choice("view", viewSB, viewNB, viewCached)
	if err != nil {
		return err
	}
	by, value, err := q.AtMostOne("descriptor", "key-prefix")
	if err != nil {
		return err
	}
	h, err = h.revealing(r, q)
	if err != nil {
		return err
	}
	// Clients ask this first, to find out what they can ask.
	if by == "" {
		return reply.JSON(w, h.dumpable())
	}
	d, err := h.descriptor(by, value)
	if err != nil {
		return err
	}
	if view == viewSB {
		seen, err := h.readBack(r.Context(), d.Name)
		if err != nil {
			return err
		}
		return reply.Array(w, reply.Mapped(seen, h.retrievedEntry))
	}
	// A snapshot: no transaction waits for the answer.
	statuses := h.sched.Statuses("")
	if view == viewNB {
		return reply.Array(w, reply.Mapped(declaredStatuses(statuses, d.Name), h.declaredEntry))
	}
	return reply.Array(w, reply.Mapped(appliedStatuses(statuses, d.Name), h.appliedEntry))
}

// message returns m as a dump shows it: without secrets, unless the client may see
// them.
func (h *handler) message(m proto.Message) *wire.Message {
	if !h.Secrets {
		m = models.Redacted(m)
	}
	return wire.MessageOf(m)
}

// dumpable lists descriptors, key prefixes and views. A descriptor whose values users
// cannot declare has an empty prefix in the list, so that both lists have the same order.
func (h *handler) dumpable() wire.DumpIndex {
	index := wire.DumpIndex{Descriptors: []string{}, KeyPrefixes: []string{}, Views: []string{viewSB, viewNB, viewCached}}
	for _, d := range inspect.Descriptors(h.sched) {
		index.Descriptors = append(index.Descriptors, d.Name)
		index.KeyPrefixes = append(index.KeyPrefixes, declaredPrefix(d))
	}
	return index
}

// declaredPrefix returns the prefix of the keys that users can declare for d, or ""
// if they cannot.
func declaredPrefix(d inspect.Descriptor) string {
	if !d.Modelled {
		return ""
	}
	return d.Prefix
}

// descriptor finds a descriptor by name or by key prefix.
func (h *handler) descriptor(by, value string) (inspect.Descriptor, error) {
	for _, d := range inspect.Descriptors(h.sched) {
		if by == "descriptor" && d.Name == value || by == "key-prefix" && declaredPrefix(d) == h.short(value) {
			return d, nil
		}
	}
	err := fmt.Errorf("%s=%q: no descriptor has it; GET /scheduler/dump lists them", by, value)
	if by == "key-prefix" {
		err = reply.NotFound(err)
	}
	return inspect.Descriptor{}, err
}

// declaredStatuses returns the declared values of a descriptor. It modifies the
// slice.
func declaredStatuses(statuses []*scheduler.Status, descriptor string) []*scheduler.Status {
	return slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
		return st.Descriptor != descriptor || st.Desired == nil || st.Base != ""
	})
}

// appliedStatuses returns the values of a descriptor that are applied. It modifies
// the slice.
func appliedStatuses(statuses []*scheduler.Status, descriptor string) []*scheduler.Status {
	return slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
		return st.Descriptor != descriptor || st.Actual == nil
	})
}

// retrievedEntry returns a value that was read back.
func (h *handler) retrievedEntry(s scheduler.Found[proto.Message, any]) wire.DumpEntry {
	e := wire.DumpEntry{Key: s.Key, Value: h.message(s.Value), Origin: wire.FromNB, Metadata: metadata(s.Meta)}
	if s.Foreign {
		e.Origin = wire.FromSB
	}
	return e
}

// declaredEntry returns the declared value of a key, with the metadata of what is applied.
func (h *handler) declaredEntry(st *scheduler.Status) wire.DumpEntry {
	return wire.DumpEntry{Key: st.Key, Value: h.message(st.Desired), Origin: wire.FromNB, Metadata: metadata(st.Meta)}
}

// appliedEntry returns the applied value of a key. An OBTAINED value comes from the
// southbound.
func (h *handler) appliedEntry(st *scheduler.Status) wire.DumpEntry {
	e := wire.DumpEntry{Key: st.Key, Value: h.message(st.Actual), Origin: wire.FromNB, Metadata: metadata(st.Meta)}
	if st.State == scheduler.Obtained {
		e.Origin = wire.FromSB
	}
	return e
}

// metadata returns the metadata of a value as JSON, or null if it cannot be encoded. The
// types of metadata are those of descriptors, which may be anything.
func metadata(meta any) json.RawMessage {
	data, err := json.Marshal(meta)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
