package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/stats"
)

// ErrNoSegment is the reason for missing counters: VPP does not run, or has no stats segment.
var ErrNoSegment = stats.ErrNone

// ErrTooMany is the error of more counters than the agent keeps or shows.
var ErrTooMany = errors.New("VPP has too many counters")

// mostBytes is the memory for the counters of one reading. 32 MiB have about 100,000 interfaces.
const mostBytes = 32 << 20

// read returns the counters of the wanted groups from the segment at a socket.
func read(ctx context.Context, socket string, groups []Group) (out Snapshot, err error) {
	err = stats.Read(ctx, socket, func(s *stats.Segment) error {
		out, err = collect(s, groups)
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	return out, nil
}

// collect reads the wanted groups of a segment.
func collect(s *stats.Segment, groups []Group) (Snapshot, error) {
	c := collection{segment: s, left: mostBytes, pools: map[string]int{}, links: map[uint64]map[uint32]uint64{}}
	err := s.Entries(func(e stats.Entry) error {
		for _, g := range groups {
			rest, ok := bytes.CutPrefix(e.Name, prefixes[g])
			if ok {
				return c.add(g, utf8Of(string(rest)), e)
			}
		}
		return nil
	})
	if err == nil {
		err = c.follow()
	}
	if err != nil {
		return Snapshot{}, err
	}
	return c.snapshot(), nil
}

// utf8Of replaces bytes of a name that are not UTF-8. A process that shares VPP's memory can write any, and
// neither Prometheus nor protobuf accepts them.
func utf8Of(name string) string { return strings.ToValidUTF8(name, string(utf8.RuneError)) }

// prefixes are those of the names of each group's entries.
var prefixes = map[Group][]byte{
	Runtime:    []byte("/sys/node/"),
	Memory:     []byte("/mem/"),
	Buffers:    []byte("/buffer-pools/"),
	Nodes:      []byte("/err/"),
	Interfaces: []byte("/if/"),
}

// A collection is a Snapshot in the making. Counters come before or after the names of their
// places.
type collection struct {
	segment    *stats.Segment
	left       int // bytes that it may still take
	out        Snapshot
	interfaces []InterfaceCounters
	names      []string // of nodes
	runtime    [][]RuntimeItem
	pools      map[string]int // places in out.Buffers
	// links are the counters of errors: all have one entry, and each is a column of it.
	links  map[uint64]map[uint32]uint64
	linked []link // of out.Nodes
}

// A link is the place of a counter.
type link struct {
	entry uint64
	index uint32
}

// add adds an entry of a group. Entries of other kinds than expected are skipped: a newer VPP may
// have them.
func (c *collection) add(g Group, name string, e stats.Entry) error {
	switch g {
	case Interfaces:
		return c.ofInterfaces(name, e)
	case Runtime:
		return c.ofRuntime(name, e)
	case Nodes:
		return c.ofNodes(name, e)
	case Memory:
		return c.ofMemory(name, e)
	case Buffers:
		return c.ofBuffers(name, e)
	}
	return nil
}

// take accounts for memory before it is used.
func (c *collection) take(bytes int) error {
	if bytes > c.left {
		return fmt.Errorf("%w: they take more than %d MiB; groups can be left out with skipped in telemetry.conf", ErrTooMany, mostBytes>>20)
	}
	c.left -= bytes
	return nil
}

// growTo makes a list long enough for an index.
func growTo[T any](c *collection, list *[]T, index uint64) error {
	var one T
	for uint64(len(*list)) <= index {
		if err := c.take(int(unsafe.Sizeof(one))); err != nil {
			return err
		}
		*list = append(*list, one)
	}
	return nil
}

// ofInterfaces adds a counter of all interfaces, summed over the threads. VPP's vectors have an
// element for each index, also for indexes that are free.
func (c *collection) ofInterfaces(counter string, e stats.Entry) error {
	if e.Kind == stats.Names && counter == "names" {
		return c.segment.Names(e, func(index uint64, name string) error {
			if err := growTo(c, &c.interfaces, index); err != nil {
				return err
			}
			name = utf8Of(name)
			c.interfaces[index].Name = name
			return c.take(len(name))
		})
	}
	var none InterfaceCounters
	simple, combined := e.Kind == stats.Simple && none.simple(counter) != nil, e.Kind == stats.Combined && none.combined(counter) != nil
	if !simple && !combined {
		return nil
	}
	return c.segment.Counters(e, stats.NoLimit, func(_, index uint64, n [2]uint64) error {
		if err := growTo(c, &c.interfaces, index); err != nil {
			return err
		}
		if simple {
			*c.interfaces[index].simple(counter) += n[0]
			return nil
		}
		at := c.interfaces[index].combined(counter)
		at.Packets += n[0]
		at.Bytes += n[1]
		return nil
	})
}

// ofRuntime adds a counter of all nodes, by thread.
func (c *collection) ofRuntime(counter string, e stats.Entry) error {
	switch {
	case e.Kind == stats.Names && counter == "names":
		return c.segment.Names(e, func(index uint64, name string) error {
			if err := growTo(c, &c.names, index); err != nil {
				return err
			}
			name = utf8Of(name)
			c.names[index] = name
			return c.take(len(name))
		})
	case e.Kind == stats.Simple:
		return c.segment.Counters(e, stats.NoLimit, func(thread, index uint64, n [2]uint64) error {
			if err := growTo(c, &c.runtime, thread); err != nil {
				return err
			}
			if err := growTo(c, &c.runtime[thread], index); err != nil {
				return err
			}
			c.runtime[thread][index].set(counter, n[0])
			return nil
		})
	}
	return nil
}

// ofNodes adds an error counter, named NODE/REASON. A reason may have slashes. Its number follows.
func (c *collection) ofNodes(name string, e stats.Entry) error {
	if e.Kind != stats.Link {
		return nil
	}
	const perCounter = int(unsafe.Sizeof(NodeCounter{})+unsafe.Sizeof(link{})) + 100 // in maps
	if err := c.take(len(name) + perCounter); err != nil {
		return err
	}
	node, reason, _ := strings.Cut(name, "/")
	c.out.Nodes, c.linked = append(c.out.Nodes, NodeCounter{Node: node, Reason: reason}), append(c.linked, link{e.Target, e.Index})
	if c.links[e.Target] == nil {
		c.links[e.Target] = map[uint32]uint64{}
	}
	c.links[e.Target][e.Index] = 0
	return nil
}

// follow sets the error counters, summed over the threads. Each entry with counters is read once,
// because VPP has thousands of links to one entry.
func (c *collection) follow() error {
	for target, sums := range c.links {
		e, err := c.segment.Entry(target)
		if err != nil {
			return err
		}
		if e.Kind != stats.Simple {
			continue
		}
		err = c.segment.Counters(e, stats.NoLimit, func(_, index uint64, n [2]uint64) error {
			if sum, ok := sums[uint32(index)]; ok {
				sums[uint32(index)] = sum + n[0]
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("errors: %w", err)
		}
	}
	for i, l := range c.linked {
		c.out.Nodes[i].Value = c.links[l.entry][l.index]
	}
	return nil
}

// ofMemory adds a heap. Its counters are those of VPP's src/vlib/stats/provider_mem.c.
func (c *collection) ofMemory(heap string, e stats.Entry) error {
	if e.Kind != stats.Simple || heap != "main heap" && heap != "stat segment" {
		return nil
	}
	const counters = 7
	return c.segment.Counters(e, counters, func(thread, index uint64, n [2]uint64) error {
		if index == 0 {
			if err := c.take(int(unsafe.Sizeof(Heap{}))); err != nil {
				return err
			}
			c.out.Memory = append(c.out.Memory, Heap{Name: heap})
		}
		m := &c.out.Memory[len(c.out.Memory)-1]
		switch index {
		case 0:
			m.Total = n[0]
		case 1:
			m.Used = n[0]
		case 2:
			m.Free = n[0]
		case 3:
			m.Mapped = n[0]
		case 4:
			m.MostAllocated = n[0]
		case 5:
			m.FreeChunks = n[0]
		case 6:
			m.Trimmable = n[0]
		}
		return nil
	})
}

// ofBuffers adds a counter of a buffer pool, named POOL/COUNTER.
func (c *collection) ofBuffers(name string, e stats.Entry) error {
	at := strings.LastIndexByte(name, '/')
	if at < 0 || e.Kind != stats.Scalar {
		return nil
	}
	pool, counter := name[:at], name[at+1:]
	place, known := c.pools[pool]
	if !known {
		if err := c.take(len(name) + int(unsafe.Sizeof(BufferPool{})) + 100); err != nil { // in the map, too
			return err
		}
		place = len(c.out.Buffers)
		c.pools[pool] = place
		c.out.Buffers = append(c.out.Buffers, BufferPool{Name: pool, Index: place})
	}
	switch p := &c.out.Buffers[place]; counter {
	case "cached":
		p.Cached = e.Value()
	case "used":
		p.Used = e.Value()
	case "available":
		p.Available = e.Value()
	}
	return nil
}

// snapshot returns what was collected. Interfaces and nodes without a name were deleted.
func (c *collection) snapshot() Snapshot {
	for i := range c.interfaces {
		c.interfaces[i].Index = uint32(i)
	}
	c.out.Interfaces = slices.DeleteFunc(c.interfaces, func(i InterfaceCounters) bool { return i.Name == "" })
	for t, items := range c.runtime {
		for i := range items {
			items[i].Index = uint32(i)
			if i < len(c.names) {
				items[i].Name = c.names[i]
			}
		}
		items = slices.DeleteFunc(items, func(i RuntimeItem) bool { return i.Name == "" })
		c.out.Runtime = append(c.out.Runtime, Thread{ID: t, Name: threadName(t), Items: items})
	}
	return c.out
}

// threadName returns VPP's name of a thread.
func threadName(t int) string {
	if t == 0 {
		return "vpp_main"
	}
	return fmt.Sprintf("vpp_wk_%d", t-1)
}
