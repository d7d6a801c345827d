package ip

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A Key identifies a table.
type Key struct {
	IPv6 bool
	ID   uint32
}

// A Table is an IP table.
type Table struct {
	Key
	Name string

	deleted bool // the table stays only as long as something uses it
	routes  routes
	hash    ip.IPFlowHashConfig
}

// defaultHash is the hash of flows of a new table (VPP ip_flow_hash.h, IP_FLOW_HASH_DEFAULT).
const defaultHash ip.IPFlowHashConfig = 0x9f

// tables are all tables, and the slots of deleted ones. The next table of the same IP
// version takes over a slot with the routes that were left in it, so they show up again.
type tables struct {
	byKey map[Key]*Table
	order []*Table // IPv4 first, as dumps list them
	freed [2][]routes
}

// newTables returns table 0 of both versions, which always exists.
func newTables() tables {
	all := tables{byKey: map[Key]*Table{}}
	all.add(Key{IPv6: false}, "")
	all.add(Key{IPv6: true}, "")
	return all
}

// add makes a table. An existing table keeps its name, and is no longer deleted.
func (all *tables) add(key Key, name string) {
	if t := all.byKey[key]; t != nil {
		t.deleted = false
		return
	}
	if name == "" {
		name = fmt.Sprintf("ipv4-VRF:%d", key.ID)
		if key.IPv6 {
			name = fmt.Sprintf("ipv6-VRF:%d", key.ID)
		}
	}
	t := &Table{Key: key, Name: name, hash: defaultHash}
	family := Family(key.IPv6)
	if left := all.freed[family]; len(left) > 0 {
		t.routes, all.freed[family] = left[len(left)-1], left[:len(left)-1]
	} else {
		t.routes = newRoutes(key.IPv6)
	}
	all.byKey[key] = t
	all.order = append(all.order, t)
	slices.SortStableFunc(all.order, func(a, b *Table) int { return cmp.Compare(Family(a.IPv6), Family(b.IPv6)) })
}

// free removes a table and keeps its slot.
func (all *tables) free(t *Table) {
	delete(all.byKey, t.Key)
	all.order = slices.DeleteFunc(all.order, func(other *Table) bool { return other == t })
	all.freed[Family(t.IPv6)] = append(all.freed[Family(t.IPv6)], t.routes)
}

// HasTable returns whether a table exists.
func (p *IP) HasTable(ipv6 bool, id uint32) bool { return p.tables.byKey[Key{ipv6, id}] != nil }

// Tables returns all tables in the order of the dump: IPv4 first. The caller must not
// change them.
func (p *IP) Tables() []*Table { return p.tables.order }

// UsedBy registers a user of tables. A deleted table stays while uses returns true for it.
func (p *IP) UsedBy(uses func(Key) bool) { p.users = append(p.users, uses) }

// Private registers a user that has IPv6 tables of its own, which have names and no number. Only the
// dump of tables shows them.
func (p *IP) Private(names func() []string) { p.private = append(p.private, names) }

// NeedTable makes a table that stays only as long as something uses it, unless the table
// exists.
func (p *IP) NeedTable(key Key) {
	if p.tables.byKey[key] == nil {
		p.tables.add(key, "")
		p.tables.byKey[key].deleted = true
	}
}

// Collect removes the deleted tables that nothing uses any more. A user of tables calls it
// after each change.
func (p *IP) Collect() {
	for _, t := range p.tables.byKey {
		if t.deleted && !p.isUsed(t) {
			p.tables.free(t)
		}
	}
}

// isUsed returns whether an interface, a path, or another plugin uses a table.
func (p *IP) isUsed(t *Table) bool {
	for _, i := range p.vpp.Interfaces() {
		if i.Tables[Family(t.IPv6)] == t.ID {
			return true
		}
	}
	for _, other := range p.tables.byKey {
		if other.routes.leadTo(t.Key) {
			return true
		}
	}
	return slices.ContainsFunc(p.users, func(uses func(Key) bool) bool { return uses(t.Key) })
}

// tableMessages registers the messages and pages of tables.
func (p *IP) tableMessages() {
	p.vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(func(q *ip.IPTableAddDel, _ *ip.IPTableAddDelReply) core.Errno { return p.changeTable(q.IsAdd, q.Table) }),
			core.Call(func(q *ip.IPTableAddDelV2, _ *ip.IPTableAddDelV2Reply) core.Errno {
				return p.changeTable(q.IsAdd, q.Table)
			}),
			core.Call(p.flush),
			// The first version of the message accepts unknown tables. No message reads the
			// hash of flows back; the command line shows it.
			core.Call(func(*ip.SetIPFlowHash, *ip.SetIPFlowHashReply) core.Errno { return core.OK }),
			core.Call(func(q *ip.SetIPFlowHashV2, _ *ip.SetIPFlowHashV2Reply) core.Errno {
				t := p.tables.byKey[Key{q.Af != 0, q.TableID}]
				if t == nil {
					return api.NO_SUCH_FIB
				}
				t.hash = q.FlowHashConfig
				return core.OK
			}),
			core.Dump(func(_ *ip.IPTableDump, yield func(ip.IPTableDetails)) {
				for _, t := range p.tables.order {
					yield(ip.IPTableDetails{Table: ip.IPTable{TableID: t.ID, IsIP6: t.IPv6, Name: t.Name}})
				}
				for _, names := range p.private {
					for _, name := range names() {
						yield(ip.IPTableDetails{Table: ip.IPTable{TableID: core.None, IsIP6: true, Name: name}})
					}
				}
			}),
		},
		Pages: map[string]func() string{"show ip table": p.showTables, "show ip fib": p.showRoutes},
		Commands: map[string]func([]string) (string, core.Errno){
			"show ip fib table":  func(words []string) (string, core.Errno) { return p.showTable(false, words), core.OK },
			"show ip6 fib table": func(words []string) (string, core.Errno) { return p.showTable(true, words), core.OK },
		},
	})
}

// changeTable succeeds for an unknown table and for table 0, which nothing deletes.
// Deleting a table does not delete its routes; flush does.
func (p *IP) changeTable(add bool, q ip.IPTable) core.Errno {
	key := Key{q.IsIP6, q.TableID}
	if add {
		p.tables.add(key, q.Name)
		return core.OK
	}
	if t := p.tables.byKey[key]; t != nil && key.ID != 0 {
		t.deleted = true
		p.Collect()
	}
	return core.OK
}

// flush deletes the API routes of a table. The table's special routes stay, and so do
// those of addresses. It disables all interfaces in the table, and nothing enables them
// again.
func (p *IP) flush(q *ip.IPTableFlush, _ *ip.IPTableFlushReply) core.Errno {
	t := p.tables.byKey[Key{q.Table.IsIP6, q.Table.TableID}]
	if t == nil {
		return api.NO_SUCH_FIB
	}
	for _, i := range p.vpp.Interfaces() {
		if i.Tables[Family(t.IPv6)] == t.ID {
			p.vpp.SetFlags(i, 0)
		}
	}
	t.routes.flush()
	return core.OK
}

// showTables prints the number of routes of each table, for tests that look for leftovers.
func (p *IP) showTables() string {
	var b strings.Builder
	for _, t := range p.tables.order {
		fmt.Fprintf(&b, "%-12d %-24s %d routes\n", t.ID, t.Name, len(t.routes.byPrefix))
	}
	return b.String()
}

// showTable prints the head of a table as VPP does, with the hash of flows. The words are its ID
// and "summary".
func (p *IP) showTable(ipv6 bool, words []string) string {
	for _, t := range p.tables.order {
		if t.IPv6 != ipv6 || fmt.Sprint(t.ID, " summary") != strings.Join(words, " ") {
			continue
		}
		var fields []string
		for bit, name := range []string{"src", "dst", "sport", "dport", "proto", "reverse", "symmetric", "flowlabel"} {
			if t.hash&(1<<bit) != 0 {
				fields = append(fields, name)
			}
		}
		return fmt.Sprintf("%s, flow hash:[%s ]\n", t.Name, strings.Join(fields, " "))
	}
	return ""
}

// showRoutes prints each path of each table, sorted.
func (p *IP) showRoutes() string {
	var b strings.Builder
	for _, t := range p.tables.order {
		fmt.Fprintf(&b, "%s\n", t.Name)
		for _, r := range t.routes.sorted() {
			var paths []string
			for _, path := range r.best().paths {
				paths = append(paths, p.pathText(t.IPv6, path))
			}
			slices.Sort(paths)
			for _, path := range paths {
				fmt.Fprintf(&b, "  %-40s %s\n", r.best().prefix, path)
			}
		}
	}
	return b.String()
}
