package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/span"
)

// A spanKey is who is mirrored to whom, and where.
type spanKey struct {
	from, to uint32
	l2       bool
}

func (a spanKey) compare(b spanKey) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}

// spanMessages: VPP does not look whether the interfaces are there, and keeps all when they
// go (VPP span.c, span_add_delete_entry).
func spanMessages() []entry {
	return []entry{
		call(func(w *world, q *span.SwInterfaceSpanEnableDisable, _ *span.SwInterfaceSpanEnableDisableReply) errno {
			key := spanKey{uint32(q.SwIfIndexFrom), uint32(q.SwIfIndexTo), q.IsL2}
			switch {
			case q.State > span.SPAN_STATE_API_RX_TX:
				return api.UNIMPLEMENTED
			case key.from == none || key.to == none && q.State != 0 || key.from == key.to:
				return api.INVALID_INTERFACE
			}
			if delete(w.spans, key); q.State != span.SPAN_STATE_API_DISABLED {
				w.spans[key] = q.State
			}
			return ok
		}),
		dump(func(w *world, q *span.SwInterfaceSpanDump, yield func(span.SwInterfaceSpanDetails)) {
			for _, key := range slices.SortedFunc(maps.Keys(w.spans), spanKey.compare) {
				if key.l2 == q.IsL2 {
					yield(span.SwInterfaceSpanDetails{
						SwIfIndexFrom: interface_types.InterfaceIndex(key.from), SwIfIndexTo: interface_types.InterfaceIndex(key.to),
						State: w.spans[key], IsL2: key.l2,
					})
				}
			}
		}),
	}
}

func (w *world) showSpans() string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(w.spans), spanKey.compare) {
		fmt.Fprintf(&b, "%s to %s %s l2 %t\n", w.nameOf(key.from), w.nameOf(key.to), w.spans[key], key.l2)
	}
	return b.String()
}
