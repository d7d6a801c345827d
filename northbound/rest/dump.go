package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
)

// What a dump shows: what really stands, what is declared, or what the
// scheduler knows to stand.
const (
	viewSB     = "SB"
	viewNB     = "NB"
	viewCached = "cached"
)

func (h *handler) dump(w http.ResponseWriter, r *http.Request, q query) error {
	view, err := q.choice("view", viewSB, viewNB, viewCached)
	if err != nil {
		return err
	}
	by, value, err := q.atMostOne("descriptor", "key-prefix")
	if err != nil {
		return err
	}
	if by == "" {
		return replyJSON(w, h.dumpable())
	}
	d, err := h.descriptor(by, value)
	if err != nil {
		return err
	}
	if view == viewSB {
		seen, err := h.sched.Dump(r.Context(), d.Name)
		if err != nil {
			return err
		}
		return replyArray(w, mapped(seen, h.retrievedEntry))
	}
	statuses := h.sched.Statuses("")
	if view == viewNB {
		return replyArray(w, mapped(declaredStatuses(statuses, d.Name), h.declaredEntry))
	}
	return replyArray(w, mapped(appliedStatuses(statuses, d.Name), h.appliedEntry))
}

// message is m as a dump shows it.
func (h *handler) message(m proto.Message) *wire.Message {
	if !h.Secrets {
		m = models.Redacted(m)
	}
	return wire.MessageOf(m)
}

func (h *handler) dumpable() wire.DumpIndex {
	index := wire.DumpIndex{Descriptors: []string{}, KeyPrefixes: []string{}, Views: []string{viewSB, viewNB, viewCached}}
	for _, d := range h.sched.Descriptors() {
		index.Descriptors = append(index.Descriptors, d.Name)
		index.KeyPrefixes = append(index.KeyPrefixes, declaredPrefix(d))
	}
	return index
}

// declared is the prefix of the keys that people declare for d, if they do.
func declaredPrefix(d scheduler.DescriptorInfo) string {
	if !d.Modelled {
		return ""
	}
	return d.Prefix
}

func (h *handler) descriptor(by, value string) (scheduler.DescriptorInfo, error) {
	for _, d := range h.sched.Descriptors() {
		if by == "descriptor" && d.Name == value || by == "key-prefix" && declaredPrefix(d) == h.short(value) {
			return d, nil
		}
	}
	err := fmt.Errorf("%s=%q: no descriptor has it; GET /scheduler/dump lists them", by, value)
	if by == "key-prefix" {
		err = notFound(err)
	}
	return scheduler.DescriptorInfo{}, err
}

func declaredStatuses(statuses []*scheduler.Status, descriptor string) []*scheduler.Status {
	return slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
		return st.Descriptor != descriptor || st.Desired == nil || st.Base != ""
	})
}

func appliedStatuses(statuses []*scheduler.Status, descriptor string) []*scheduler.Status {
	return slices.DeleteFunc(statuses, func(st *scheduler.Status) bool {
		return st.Descriptor != descriptor || st.Actual == nil
	})
}

func (h *handler) retrievedEntry(s scheduler.Found[scheduler.Message, any]) wire.DumpEntry {
	e := wire.DumpEntry{Key: s.Key, Value: h.message(s.Value), Origin: wire.FromNB, Metadata: metadata(s.Meta)}
	if s.Foreign {
		e.Origin = wire.FromSB
	}
	return e
}

func (h *handler) declaredEntry(st *scheduler.Status) wire.DumpEntry {
	return wire.DumpEntry{Key: st.Key, Value: h.message(st.Desired), Origin: wire.FromNB, Metadata: metadata(nil)}
}

func (h *handler) appliedEntry(st *scheduler.Status) wire.DumpEntry {
	e := wire.DumpEntry{Key: st.Key, Value: h.message(st.Actual), Origin: wire.FromNB, Metadata: metadata(st.Meta)}
	if st.State == kvscheduler.ValueState_OBTAINED {
		e.Origin = wire.FromSB
	}
	return e
}

// metadata is what Create learned, as JSON; null where it cannot be written so.
func metadata(meta any) json.RawMessage {
	data, err := json.Marshal(meta)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
