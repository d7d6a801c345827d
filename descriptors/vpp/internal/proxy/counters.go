package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"

	"go.fd.io/govpp/adapter"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/stats"
)

// mostBytes is the memory for the counters of one reading.
const mostBytes = 32 << 20

// errTooMany is the error of more counters than that.
var errTooMany = fmt.Errorf("VPP has too many counters: they take more than %d MiB", mostBytes>>20)

// counters are VPP's counters in the form that GoVPP's StatsConnection wants. GoVPP's own client maps
// the stats segment and trusts it: a damaged one would end the process. Each call reads the segment
// anew, in a second at most. The zero value has no socket.
type counters struct{ socket string }

// Connect implements adapter.StatsAPI. It tells whether there are counters.
func (c counters) Connect() error {
	return stats.Read(context.Background(), c.socket, func(*stats.Segment) error { return nil })
}

// Disconnect implements adapter.StatsAPI.
func (counters) Disconnect() error { return nil }

// ListStats implements adapter.StatsAPI.
func (c counters) ListStats(patterns ...string) (out []adapter.StatIdentifier, err error) {
	all, err := c.DumpStats(patterns...)
	for _, e := range all {
		out = append(out, e.StatIdentifier)
	}
	return out, err
}

// PrepareDir implements adapter.StatsAPI.
func (c counters) PrepareDir(patterns ...string) (*adapter.StatDir, error) {
	all, err := c.DumpStats(patterns...)
	if err != nil {
		return nil, err
	}
	return &adapter.StatDir{Entries: all}, nil
}

// PrepareDirOnIndex implements adapter.StatsAPI. StatsConnection does not call it.
func (counters) PrepareDirOnIndex(...uint32) (*adapter.StatDir, error) {
	return nil, errors.ErrUnsupported
}

// UpdateDir implements adapter.StatsAPI: StatsConnection then prepares the entries again.
func (counters) UpdateDir(*adapter.StatDir) error { return adapter.ErrStatsDirStale }

// DumpStats implements adapter.StatsAPI.
func (c counters) DumpStats(patterns ...string) (out []adapter.StatEntry, err error) {
	var wanted []*regexp.Regexp
	for _, pattern := range patterns {
		r, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, r)
	}
	err = stats.Read(context.Background(), c.socket, func(s *stats.Segment) error {
		d := &dump{segment: s, left: mostBytes, targets: map[uint64]adapter.SimpleCounterStat{}}
		out = nil
		return s.Entries(func(e stats.Entry) error {
			for _, r := range wanted {
				if r.Match(e.Name) {
					one, err := d.entry(e)
					out = append(out, one)
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// A dump is one reading.
type dump struct {
	segment *stats.Segment
	left    int // bytes that it may still take
	// targets have what links lead to: thousands of them lead to one entry.
	targets map[uint64]adapter.SimpleCounterStat
}

// take accounts for memory.
func (d *dump) take(bytes int) error {
	if bytes > d.left {
		return errTooMany
	}
	d.left -= bytes
	return nil
}

// entry returns an entry in GoVPP's form. Data is nil for kinds that nobody reads.
func (d *dump) entry(e stats.Entry) (out adapter.StatEntry, err error) {
	const size = 200 // of an entry with its name
	out.Name, out.Symlink = bytes.Clone(e.Name), e.Kind == stats.Link
	if err := d.take(size); err != nil {
		return out, err
	}
	switch e.Kind {
	case stats.Scalar:
		out.Data = adapter.ScalarStat(e.Value())
	case stats.Simple:
		out.Data, err = d.simple(e)
	case stats.Combined:
		var all adapter.CombinedCounterStat
		err = d.segment.Counters(e, stats.NoLimit, func(thread, _ uint64, n [2]uint64) error {
			return add(d, (*[][]adapter.CombinedCounter)(&all), thread, n)
		})
		out.Data = all
	case stats.Names:
		var names adapter.NameStat
		err = d.segment.Names(e, func(index uint64, name string) error {
			for uint64(len(names)) <= index {
				if err := d.take(24); err != nil {
					return err
				}
				names = append(names, nil)
			}
			names[index] = adapter.Name(name)
			return d.take(len(name))
		})
		out.Data = names
	case stats.Link:
		out.Data, err = d.column(e)
	case stats.Other:
	}
	if out.Data != nil {
		out.Type = out.Data.Type()
	}
	return out, err
}

// simple returns the counters of an entry.
func (d *dump) simple(e stats.Entry) (all adapter.SimpleCounterStat, err error) {
	err = d.segment.Counters(e, stats.NoLimit, func(thread, _ uint64, n [2]uint64) error {
		return add(d, (*[][]adapter.Counter)(&all), thread, adapter.Counter(n[0]))
	})
	return all, err
}

// add adds a counter of a thread.
func add[T any](d *dump, all *[][]T, thread uint64, n T) error {
	for uint64(len(*all)) <= thread {
		if err := d.take(24); err != nil {
			return err
		}
		*all = append(*all, nil)
	}
	(*all)[thread] = append((*all)[thread], n)
	return d.take(16)
}

// column returns the counters that a link leads to, one of each thread.
func (d *dump) column(e stats.Entry) (adapter.Stat, error) {
	all, known := d.targets[e.Target]
	if !known {
		target, err := d.segment.Entry(e.Target)
		if err == nil && target.Kind == stats.Simple {
			all, err = d.simple(target)
		}
		if err != nil {
			return nil, err
		}
		d.targets[e.Target] = all
	}
	if len(all) == 0 {
		return nil, nil // it leads to nothing that can be read
	}
	out := make(adapter.SimpleCounterStat, 0, len(all))
	for _, thread := range all {
		if err := d.take(32); err != nil {
			return nil, err
		}
		if uint64(e.Index) < uint64(len(thread)) {
			out = append(out, []adapter.Counter{thread[e.Index]})
		} else {
			out = append(out, nil)
		}
	}
	return out, nil
}
