package dns

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/scheduler"
)

// recordKey is the key of the record in the memory. The memory may have records of others.
const recordKey = "vpp/dns/servers"

// A record has the servers that VPP may have from the agent. Requests whose answers were lost
// count as done, so it may have more servers than VPP, but never fewer.
type record struct {
	memory scheduler.Memory // nil: none
	log    *slog.Logger

	mu  sync.Mutex // guards all
	all []netip.Addr
}

// newRecord returns the record in a memory.
func newRecord(memory scheduler.Memory, log *slog.Logger) *record {
	r := &record{memory: memory, log: cmp.Or(log, slog.Default())}
	if memory == nil {
		return r
	}
	for key, data := range memory.Load() {
		if key != recordKey {
			continue
		}
		for text := range strings.FieldsSeq(string(data)) {
			a, err := netip.ParseAddr(text)
			if err != nil {
				r.log.Warn("the record of DNS servers has an unreadable one; it stays in VPP", "server", text, "err", err)
				continue
			}
			r.all = append(r.all, a)
		}
	}
	return r
}

// servers returns the servers on record. The caller must not change them.
func (r *record) servers() []netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// set replaces the servers, here and in the memory.
func (r *record) set(servers []netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(servers, netip.Addr.Compare)
	servers = slices.Compact(servers)
	if slices.Equal(servers, r.all) {
		return
	}
	r.all = servers
	if r.memory == nil {
		return
	}
	var data []byte // nil removes the record
	for _, a := range servers {
		data = append(data, a.String()+" "...)
	}
	if err := r.memory.Save(maps.All(map[string][]byte{recordKey: data})); err != nil {
		r.log.Error("the record of DNS servers cannot be saved; after a restart of the agent, servers may stay in VPP", "err", err)
	}
}
