package telemetry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
)

// ErrNoSegment is the reason for missing counters: VPP does not run, or has no stats segment.
var ErrNoSegment = errors.New("VPP has no stats segment")

// read returns the counters of the wanted groups from the segment at a socket.
//
// It opens the segment for each call, because that of a restarted VPP is another one. GoVPP
// maps it into memory and follows the addresses in it. So a segment that VPP is about to
// replace can lead outside of the mapping; the fault is an error then, not the end of the
// process.
func read(socket string, groups []Group) (out Snapshot, err error) {
	if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, fmt.Errorf("%w: %s does not exist", ErrNoSegment, socket) // GoVPP would wait for it
	}
	statsclient.Log.SetOutput(io.Discard) // it would write to the standard output; errors are returned
	client := statsclient.NewStatsClient(socket)
	if err := client.Connect(); err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrNoSegment, err)
	}
	defer func() { err = errors.Join(err, client.Disconnect()) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			out, err = Snapshot{}, fmt.Errorf("stats segment of %s: its content is inconsistent: %v", socket, p)
		}
	}()
	var entries []adapter.StatEntry
	for attempt := 0; ; attempt++ {
		entries, err = client.DumpStats(patterns(groups)...)
		if err == nil || !errors.Is(err, adapter.ErrStatsDataBusy) || attempt == busyAttempts {
			break
		}
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("stats segment of %s: %w", socket, err)
	}
	return collect(entries), nil // copies everything: the mapping ends with the connection
}

// busyAttempts is the number of further attempts while VPP changes its directory.
const busyAttempts = 5

// patterns returns regular expressions for the names of the entries of groups.
func patterns(groups []Group) (out []string) {
	for _, g := range groups {
		switch g {
		case Runtime:
			out = append(out, "^/sys/node/")
		case Memory:
			out = append(out, "^/mem/(main heap|stat segment)$")
		case Buffers:
			out = append(out, "^/buffer-pools/")
		case Nodes:
			out = append(out, "^/err/")
		case Interfaces:
			out = append(out, "^/if/")
		}
	}
	return out
}

// collect sorts entries into a Snapshot.
func collect(entries []adapter.StatEntry) Snapshot {
	c := collection{pools: map[string]*BufferPool{}}
	for _, e := range entries {
		name := string(e.Name)
		switch {
		case strings.HasPrefix(name, "/if/"):
			c.ofInterfaces(strings.TrimPrefix(name, "/if/"), e.Data)
		case strings.HasPrefix(name, "/sys/node/"):
			c.ofRuntime(strings.TrimPrefix(name, "/sys/node/"), e.Data)
		case strings.HasPrefix(name, "/err/"):
			c.ofNodes(strings.TrimPrefix(name, "/err/"), e.Data)
		case strings.HasPrefix(name, "/mem/"):
			c.ofMemory(strings.TrimPrefix(name, "/mem/"), e.Data)
		case strings.HasPrefix(name, "/buffer-pools/"):
			c.ofBuffers(strings.TrimPrefix(name, "/buffer-pools/"), e.Data)
		}
	}
	return c.snapshot()
}

// A collection is a Snapshot in the making. Counters come before or after the names of their
// places.
type collection struct {
	out        Snapshot
	interfaces []InterfaceCounters
	names      []string // of nodes
	runtime    [][]RuntimeItem
	pools      map[string]*BufferPool
	order      []string // of pools
}

// ofInterfaces adds a counter of all interfaces, summed over the threads.
func (c *collection) ofInterfaces(counter string, data adapter.Stat) {
	switch data := data.(type) {
	case adapter.NameStat:
		if counter == "names" {
			for i, name := range data {
				c.interfaceAt(i).Name = string(name)
			}
		}
	case adapter.SimpleCounterStat:
		for _, thread := range data {
			for i, n := range thread {
				if at := c.interfaceAt(i).simple(counter); at != nil {
					*at += uint64(n)
				}
			}
		}
	case adapter.CombinedCounterStat:
		for _, thread := range data {
			for i, n := range thread {
				if at := c.interfaceAt(i).combined(counter); at != nil {
					at.Packets += n.Packets()
					at.Bytes += n.Bytes()
				}
			}
		}
	}
}

// interfaceAt returns the counters of the interface with index i, and adds empty ones up
// to it. VPP's vectors have an element for each index, also for indexes that are free.
func (c *collection) interfaceAt(i int) *InterfaceCounters {
	for len(c.interfaces) <= i {
		c.interfaces = append(c.interfaces, InterfaceCounters{Index: uint32(len(c.interfaces))})
	}
	return &c.interfaces[i]
}

// ofRuntime adds a counter of all nodes, by thread.
func (c *collection) ofRuntime(counter string, data adapter.Stat) {
	switch data := data.(type) {
	case adapter.NameStat:
		if counter == "names" {
			c.names = make([]string, len(data))
			for i, name := range data {
				c.names[i] = string(name)
			}
		}
	case adapter.SimpleCounterStat:
		for len(c.runtime) < len(data) {
			c.runtime = append(c.runtime, nil)
		}
		for t, thread := range data {
			for len(c.runtime[t]) < len(thread) {
				c.runtime[t] = append(c.runtime[t], RuntimeItem{Index: uint32(len(c.runtime[t]))})
			}
			for i, n := range thread {
				c.runtime[t][i].set(counter, uint64(n))
			}
		}
	}
}

// ofNodes adds an error counter, named NODE/REASON, summed over the threads. A reason may
// have slashes.
func (c *collection) ofNodes(name string, data adapter.Stat) {
	node, reason, _ := strings.Cut(name, "/")
	one := NodeCounter{Node: node, Reason: reason}
	switch data := data.(type) {
	case adapter.ErrorStat:
		for _, n := range data {
			one.Value += uint64(n)
		}
	case adapter.SimpleCounterStat:
		for _, thread := range data {
			for _, n := range thread {
				one.Value += uint64(n)
			}
		}
	default:
		return
	}
	c.out.Nodes = append(c.out.Nodes, one)
}

// ofMemory adds a heap. Its counters are those of VPP's src/vlib/stats/provider_mem.c.
func (c *collection) ofMemory(heap string, data adapter.Stat) {
	counters, ok := data.(adapter.SimpleCounterStat)
	if !ok {
		return
	}
	for _, n := range counters {
		m := Heap{Name: heap}
		for i, at := range []*uint64{&m.Total, &m.Used, &m.Free, &m.Mapped, &m.MostAllocated, &m.FreeChunks, &m.Trimmable} {
			if i < len(n) {
				*at = uint64(n[i])
			}
		}
		c.out.Memory = append(c.out.Memory, m)
	}
}

// ofBuffers adds a counter of a buffer pool, named POOL/COUNTER.
func (c *collection) ofBuffers(name string, data adapter.Stat) {
	at := strings.LastIndexByte(name, '/')
	value, ok := data.(adapter.ScalarStat)
	if at < 0 || !ok {
		return
	}
	pool, counter := name[:at], name[at+1:]
	if c.pools[pool] == nil {
		c.pools[pool] = &BufferPool{Name: pool, Index: len(c.order)}
		c.order = append(c.order, pool)
	}
	switch n := uint64(value); counter {
	case "cached":
		c.pools[pool].Cached = n
	case "used":
		c.pools[pool].Used = n
	case "available":
		c.pools[pool].Available = n
	}
}

// snapshot returns what was collected. Interfaces without a name were deleted.
func (c *collection) snapshot() Snapshot {
	for _, i := range c.interfaces {
		if i.Name != "" {
			c.out.Interfaces = append(c.out.Interfaces, i)
		}
	}
	for _, pool := range c.order {
		c.out.Buffers = append(c.out.Buffers, *c.pools[pool])
	}
	for t, items := range c.runtime {
		thread := Thread{ID: t, Name: threadName(t)}
		for i, item := range items {
			if i < len(c.names) && c.names[i] != "" {
				item.Name = c.names[i]
				thread.Items = append(thread.Items, item)
			}
		}
		c.out.Runtime = append(c.out.Runtime, thread)
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
