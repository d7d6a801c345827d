package goruntime

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// StartGC is GOGC while the agent takes in the declared configuration. Nearly all of
	// that memory stays in use, so collecting garbage would cost a third of the work for
	// little gain.
	StartGC = 400
	// usualMemory is the memory, in bytes, that the agent exceeds only if it needs more. It
	// collects garbage more often instead.
	usualMemory = 132 << 20
	// leastGarbage is how much garbage, in bytes, there may be beside the memory in use where
	// usualMemory is nearly reached. Above that, the garbage may grow as the memory in use does.
	leastGarbage = 40 << 20
	// pressedMemory is the memory, in bytes, up to which the agent would rather collect
	// garbage often than grow. The difference from usualMemory is room for the needs of a
	// moment, such as large texts that are parsed. The program itself takes 30 MB more.
	pressedMemory = 152 << 20
	// AmpleMemory is the memory, in bytes, up to which garbage is hardly collected until the declared
	// configuration is applied for the first time, for ampleTime at most. Taking in 100,000 keys would take
	// half as long again with the limits that hold later. On an idle machine it ends before ampleTime. A longer
	// start has passed this range, or its sources do not become complete, and the garbage is that of others.
	AmpleMemory = 300 << 20
	ampleTime   = 3 * time.Second
	// strainedMemory is the memory, in bytes, from which on the garbage may grow half as fast as the memory in
	// use. Below that, more garbage would help less than the memory it takes: the process then has
	// 220 MB. Above that, collections would cost ever more.
	strainedMemory = 192 << 20
	// fewestGarbage is how much garbage, in bytes, there may be where pressedMemory is nearly
	// reached. Collecting even more often would leave no time for anything else.
	fewestGarbage = 8 << 20
	// releaseFrom is the memory in use, in bytes, from which on pages of the program are given back every
	// releaseTime. At any time the agent needs half of those that it has ever used.
	releaseFrom = usualMemory - leastGarbage
	releaseTime = time.Second
	// Between scarceFrom and scarceTo bytes in use, the agent would rather do one thing after the other than
	// need more. An agent that has still more in use has so many keys that a large text is little beside them.
	scarceFrom = 120 << 20
	scarceTo   = 2 * scarceFrom
	// longestStart bounds the start when a source never becomes complete.
	longestStart = time.Minute
	// quietTime is how long no operation may run before the start counts as over. Links
	// report that they are up some milliseconds after their creation, and only then their
	// routes are created.
	quietTime = time.Second
	// mergeTime is how long after the start the journals of the state folder have been merged,
	// which takes memory for a moment.
	mergeTime = 20 * time.Second
	// AfterStart is how long after the last operation of the start no memory of the start is left.
	AfterStart = quietTime + mergeTime
)

// Memory returns the memory, in bytes, that the agent may take: that of the host, of its control group, or
// GOMEMLIMIT, whichever is least. It is called before AllowHeapGrowth.
func Memory() int64 {
	most := debug.SetMemoryLimit(-1)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if bytes, err := limit(); err == nil && bytes < uint64(most) { // else there is no such limit, or nobody knows
			most = int64(bytes)
		}
	}
	return most
}

// AllowHeapGrowth lets the heap grow until over is called, or longestStart has passed. Then
// the usual limit applies again, and memory that only the start needed goes back to the
// system. From the first call on, a soft limit of the memory follows the memory in use, and after each
// collection of garbage scarce is called, with whether memory is scarce. The limit is ample until applied is called, or
// ampleTime has passed. It never exceeds nine tenths of most, the memory that there is.
// A user's GOGC and GOMEMLIMIT are left alone; with GOMEMLIMIT, scarce is not called.
func AllowHeapGrowth(env func(string) (string, bool), most int64, scarce func(bool)) (applied, over func()) {
	restore, applied := func() {}, func() {}
	if _, set := env("GOGC"); !set {
		before := debug.SetGCPercent(StartGC)
		restore = func() { debug.SetGCPercent(before) }
	}
	if _, set := env("GOMEMLIMIT"); !set {
		l := &limit{ample: true, most: most / 10 * 9, scarce: scarce}
		applied = sync.OnceFunc(l.endAmple)
		time.AfterFunc(ampleTime, applied)
		l.follow()
	}
	// The timer and the announcer may both call it.
	over = sync.OnceFunc(func() {
		applied()
		restore()
		giveBack()
		for _, later := range []time.Duration{mergeTime, 4 * mergeTime} { // the last on a busy machine
			time.AfterFunc(later, giveBack)
		}
	})
	time.AfterFunc(longestStart, over)
	return applied, over
}

// giveBack returns memory that nothing uses any more to the system.
func giveBack() {
	debug.FreeOSMemory()
	releaseProgram()
}

// A limit makes the soft limit of the memory follow the memory in use.
type limit struct {
	released time.Time // when pages of the program were given back
	scarce   func(bool)
	most     int64

	mu    sync.Mutex // held while the limit is set
	ample bool       // guarded by mu
}

// set sets the limit for so much memory in use.
func (l *limit) set(inUse int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	debug.SetMemoryLimit(min(memoryLimit(inUse, l.ample), l.most))
}

// endAmple makes the limit the usual one, now and later.
func (l *limit) endAmple() {
	l.mu.Lock()
	l.ample = false
	l.mu.Unlock()
	l.set(memoryInUse())
}

// follow sets the limit, now and after each collection of garbage.
func (l *limit) follow() {
	inUse := memoryInUse()
	l.set(inUse)
	l.scarce(inUse > scarceFrom && inUse < scarceTo)
	if inUse > releaseFrom && time.Since(l.released) > releaseTime {
		releaseProgram()
		l.released = time.Now()
	}
	// A cleanup of an object that is garbage already runs after the next collection: this
	// is the only event of a collection that the runtime offers.
	runtime.AddCleanup(new(collected), (*limit).follow, l)
}

// memoryInUse returns the memory, in bytes, that the last collection of garbage could not free. Room in
// spans that no object can use counts as in use, as the runtime counts it.
func memoryInUse() int64 {
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(inUse)
	live, other := inUse[0].Value.Uint64(), inUse[1].Value.Uint64()
	for _, heap := range inUse[2:] {
		other -= min(other, heap.Value.Uint64())
	}
	return int64(live + other)
}

// collected is garbage at once. It has a pointer, so that it is not kept with other small objects.
type collected struct{ _ *collected }

// memoryLimit is the soft limit of the memory where so many bytes are in use.
func memoryLimit(inUse int64, ample bool) int64 {
	asInUse := 2*inUse - leastGarbage
	if ample {
		return max(AmpleMemory, asInUse)
	}
	// Beyond pressedMemory there is room for fewestGarbage, and from strainedMemory on for half a byte more with
	// each byte in use. It stays below what is usual, so that needs of a moment do not double the
	// memory.
	const knee = strainedMemory - fewestGarbage
	return min(max(usualMemory, asInUse), max(pressedMemory, inUse+fewestGarbage, strainedMemory+(inUse-knee)*3/2))
}

// AwaitQuiet returns at the end of the start: when the count of operations has not changed for quietTime, or ctx ends.
func AwaitQuiet(ctx context.Context, operations func() uint64) {
	quiet := time.NewTicker(quietTime)
	defer quiet.Stop()
	for before, now := uint64(0), operations(); ; before, now = now, operations() {
		if now == before {
			return
		}
		select {
		case <-quiet.C:
		case <-ctx.Done():
			return
		}
	}
}
