package vppsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
)

// A tableKey names a table.
type tableKey struct {
	ipv6 bool
	id   uint32
}

// A fib is a table.
type fib struct {
	tableKey
	name string
	// deleted: it stays only as long as something uses it.
	deleted bool
	routes  routes
}

// tables are all of them, and the slots of those that were deleted: the next table
// of the family takes the slot over, with the routes that were left in it.
type tables struct {
	byKey map[tableKey]*fib
	order []*fib // IPv4 first
	freed [2][]routes
}

func (all *tables) init() {
	all.byKey = map[tableKey]*fib{}
	all.add(tableKey{false, 0}, "")
	all.add(tableKey{true, 0}, "")
}

func (all *tables) find(ipv6 bool, id uint32) *fib { return all.byKey[tableKey{ipv6, id}] }

// add makes a table. One that is there keeps its name.
func (all *tables) add(key tableKey, name string) {
	if t := all.byKey[key]; t != nil {
		t.deleted = false
		return
	}
	if name == "" {
		name = fmt.Sprintf("ipv4-VRF:%d", key.id)
		if key.ipv6 {
			name = fmt.Sprintf("ipv6-VRF:%d", key.id)
		}
	}
	t := &fib{tableKey: key, name: name}
	if left := all.freed[family(key.ipv6)]; len(left) > 0 {
		t.routes, all.freed[family(key.ipv6)] = left[len(left)-1], left[:len(left)-1]
	} else {
		t.routes.init(key.ipv6)
	}
	all.byKey[key] = t
	all.order = append(all.order, t)
	slices.SortStableFunc(all.order, func(a, b *fib) int { return cmp.Compare(family(a.ipv6), family(b.ipv6)) })
}

// remove deletes a table, now or when nothing uses it any more.
func (all *tables) remove(w *world, key tableKey) {
	if t := all.byKey[key]; t != nil && key.id != 0 {
		t.deleted = true
		all.unbound(w)
	}
}

// unbound lets go the tables that are deleted and that nothing uses any more.
func (all *tables) unbound(w *world) {
	for _, t := range all.byKey {
		if !t.deleted || t.used(w) {
			continue
		}
		delete(all.byKey, t.tableKey)
		all.order = slices.DeleteFunc(all.order, func(other *fib) bool { return other == t })
		all.freed[family(t.ipv6)] = append(all.freed[family(t.ipv6)], t.routes)
	}
}

// used tells whether an interface is in the table or a path leads into it.
func (t *fib) used(w *world) bool {
	for _, i := range w.interfaces.byIndex {
		if i.table[family(t.ipv6)] == t.id {
			return true
		}
	}
	if w.passesOn(t) {
		return true
	}
	for _, other := range w.tables.byKey {
		if other.routes.leadTo(t) {
			return true
		}
	}
	return false
}

func tableMessages() []entry {
	return []entry{
		call(func(w *world, q *ip.IPTableAddDel, _ *ip.IPTableAddDelReply) errno {
			return w.changeTable(q.IsAdd, q.Table)
		}),
		call(func(w *world, q *ip.IPTableAddDelV2, _ *ip.IPTableAddDelV2Reply) errno {
			return w.changeTable(q.IsAdd, q.Table)
		}),
		call(func(w *world, q *ip.IPTableFlush, _ *ip.IPTableFlushReply) errno {
			t := w.tables.find(q.Table.IsIP6, q.Table.TableID)
			if t == nil {
				return api.NO_SUCH_FIB
			}
			t.routes.flush()
			return ok
		}),
		call(func(*world, *ip.SetIPFlowHash, *ip.SetIPFlowHashReply) errno { return ok }),
		call(func(w *world, q *ip.SetIPFlowHashV2, _ *ip.SetIPFlowHashV2Reply) errno {
			if w.tables.find(q.Af != 0, q.TableID) == nil {
				return api.NO_SUCH_FIB
			}
			return ok
		}),
		dump(func(w *world, _ *ip.IPTableDump, yield func(ip.IPTableDetails)) {
			for _, t := range w.tables.order {
				yield(ip.IPTableDetails{Table: ip.IPTable{TableID: t.id, IsIP6: t.ipv6, Name: t.name}})
			}
		}),
	}
}

// changeTable deletes what is not there, and table 0, without a complaint.
func (w *world) changeTable(add bool, t ip.IPTable) errno {
	key := tableKey{t.IsIP6, t.TableID}
	if add {
		w.tables.add(key, t.Name)
	} else {
		w.tables.remove(w, key)
	}
	return ok
}

func (w *world) showTables() string {
	var b strings.Builder
	for _, t := range w.tables.order {
		fmt.Fprintf(&b, "%-12d %-24s %d routes\n", t.id, t.name, len(t.routes.byPrefix))
	}
	return b.String()
}

func (w *world) showRoutes() string {
	var b strings.Builder
	for _, t := range w.tables.order {
		fmt.Fprintf(&b, "%s\n", t.name)
		for _, r := range t.routes.sorted() {
			for _, p := range r.shown().paths {
				fmt.Fprintf(&b, "  %-40s %s\n", r.shown().prefix, pathText(w, t.ipv6, p))
			}
		}
	}
	return b.String()
}
