// Package stats reads the counters that VPP keeps in its stats segment, a memory that it
// shares with whoever may connect to its stats socket.
package stats

import (
	"errors"
	"fmt"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// Counters are those of an interface.
type Counters = interfaces.InterfaceState_Statistics

// Interfaces returns the counters of interfaces, by sw_if_index. The segment is mapped
// for that long only: so one of a VPP that was restarted is never looked at.
func Interfaces(socket string) (counters map[uint32]*Counters, err error) {
	// VPP may move the segment while it is read. The old addresses are then invalid.
	err = guard.Mapped(func() error {
		counters, err = read(socket)
		return err
	})
	var moved *guard.Panic
	if errors.As(err, &moved) {
		return nil, fmt.Errorf("stats segment of %s changed while it was read: %v", socket, moved.Value)
	}
	return counters, err
}

func read(socket string) (counters map[uint32]*Counters, err error) {
	segment := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryTimeout(time.Millisecond))
	if err := segment.Connect(); err != nil {
		return nil, fmt.Errorf("stats segment: %w", err)
	}
	defer func() { err = errors.Join(err, segment.Disconnect()) }()
	entries, err := dump(segment)
	if err != nil {
		return nil, fmt.Errorf("stats segment of %s: %w", socket, err)
	}
	return sum(entries), nil
}

// attempts is how often what VPP was just changing is read again.
const attempts = 5

func dump(segment *statsclient.StatsClient) (entries []adapter.StatEntry, err error) {
	for range attempts {
		if entries, err = segment.DumpStats("^/if/"); !errors.Is(err, adapter.ErrStatsDataBusy) {
			break
		}
	}
	return entries, err
}

// sum adds up what each thread of VPP has counted. VPP keeps a place for each index that
// there ever was.
func sum(entries []adapter.StatEntry) map[uint32]*Counters {
	out := map[uint32]*Counters{}
	at := func(index int) *Counters {
		c := out[uint32(index)]
		if c == nil {
			c = &Counters{}
			out[uint32(index)] = c
		}
		return c
	}
	for _, e := range entries {
		switch data := e.Data.(type) {
		case adapter.CombinedCounterStat:
			for _, thread := range data {
				for index, n := range thread {
					combined(at(index), string(e.Name), n.Packets(), n.Bytes())
				}
			}
		case adapter.SimpleCounterStat:
			for _, thread := range data {
				for index, n := range thread {
					simple(at(index), string(e.Name), uint64(n))
				}
			}
		}
	}
	return out
}

func combined(c *Counters, name string, packets, bytes uint64) {
	switch name {
	case "/if/rx":
		c.InPackets += packets
		c.InBytes += bytes
	case "/if/tx":
		c.OutPackets += packets
		c.OutBytes += bytes
	}
}

func simple(c *Counters, name string, n uint64) {
	switch name {
	case "/if/drops":
		c.DropPackets += n
	case "/if/punt":
		c.PuntPackets += n
	case "/if/ip4":
		c.Ipv4Packets += n
	case "/if/ip6":
		c.Ipv6Packets += n
	case "/if/rx-no-buf":
		c.InNobufPackets += n
	case "/if/rx-miss":
		c.InMissPackets += n
	case "/if/rx-error":
		c.InErrorPackets += n
	case "/if/tx-error":
		c.OutErrorPackets += n
	}
}
