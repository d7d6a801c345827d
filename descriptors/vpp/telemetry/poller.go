// Package telemetry reads VPP's counters from the stats segment: memory that VPP shares with
// each client of its stats socket.
//
//	p := telemetry.New(telemetry.Options{Socket: "/run/vpp/stats.sock", Config: conf, Names: names})
//	go p.Run(ctx)                       // polls for Prometheus
//	registry.Register(p.Collector("vpp1"))
//	all, err := p.InterfaceStats(ctx)   // reads now
//
// Reading counters asks nothing of VPP: VPP writes them into the segment anyway. A poll is one
// consistent copy; Prometheus gets the last one, so that the cost for VPP's host does not depend
// on the number of scrapes. The content of the segment is not trusted: the memory of a reading and
// its time are bounded, also the time that it waits for another one.
//
// VPP without a stats segment, or no VPP, is a normal state: metrics are absent then.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// Options configure a Poller. Socket is required.
type Options struct {
	Socket string
	Config Config
	// Names returns the declared names of interfaces by sw_if_index. Defaults to none.
	Names func() map[uint32]string
	// States returns the states of interfaces by name. Defaults to none.
	States func(ctx context.Context) (map[string]*interfaces.InterfaceState, error)
	Log    *slog.Logger // Defaults to slog.Default
}

// A Poller reads VPP's counters. Its methods may be called from any goroutine.
type Poller struct {
	o        Options
	interval time.Duration
	last     atomic.Pointer[polled] // nil: none
	turn     chan struct{}          // holds a token while one reads: the memory for counters is that of one reading
}

// A polled is the result of a poll.
type polled struct {
	Snapshot
	states map[string]*interfaces.InterfaceState
}

// New returns a Poller that reads nothing before Run or a question. It opens nothing: the
// socket may not exist yet.
func New(o Options) *Poller {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Names == nil {
		o.Names = func() map[uint32]string { return nil }
	}
	if o.States == nil {
		o.States = func(context.Context) (map[string]*interfaces.InterfaceState, error) { return nil, nil }
	}
	return &Poller{o: o, interval: o.Config.interval(o.Log), turn: make(chan struct{}, 1)}
}

// Run polls until ctx ends, and then returns nil. It returns at once if the configuration
// wants no metrics.
func (p *Poller) Run(ctx context.Context) error {
	if p.o.Config.Disabled || p.o.Config.NoPrometheus {
		return nil
	}
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for was := error(nil); ; {
		err := p.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && was != nil:
			p.o.Log.Info("VPP's counters can be read again")
		case errors.Is(err, ErrNoSegment) && was == nil: // VPP may be absent on purpose; its connection says so
			p.o.Log.Debug("VPP's counters are absent", "err", err)
		case err != nil && (was == nil || was.Error() != err.Error()):
			p.o.Log.Warn("VPP's counters cannot be read; their metrics are absent", "err", err)
		}
		was = err
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// poll replaces the last snapshot, by none if VPP has none. States that cannot be read
// make no counter absent: the snapshot is stored in any case.
func (p *Poller) poll(ctx context.Context) error {
	s, err := p.Read(ctx, p.o.Config.groups()...)
	if err != nil {
		p.last.Store(nil)
		return err
	}
	states, err := p.o.States(ctx)
	p.last.Store(&polled{s, states})
	return err
}

// ErrDisabled is the error of a reading that telemetry.conf forbids.
var ErrDisabled = errors.New("VPP's counters are disabled in telemetry.conf")

// ErrBusy is the error of a reading that waited too long for others.
var ErrBusy = errors.New("other readings of VPP's counters take too long")

// patience is how long a reading waits for others.
const patience = time.Second

// Read reads counters now, of these groups or, without any, of those that are not skipped.
// The result is one consistent copy. Its cost grows with the number of VPP's nodes and
// interfaces, so callers that only want a few counters name their groups. It takes two seconds at
// most, also with a VPP that does not answer and others that read.
func (p *Poller) Read(ctx context.Context, groups ...Group) (Snapshot, error) {
	if p.o.Config.Disabled {
		return Snapshot{}, ErrDisabled
	}
	if len(groups) == 0 {
		groups = p.o.Config.groups()
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-within.Done():
		return Snapshot{}, fmt.Errorf("%w: %w", ErrBusy, within.Err())
	}
	s, err := read(ctx, p.o.Socket, groups)
	if err != nil {
		return Snapshot{}, err
	}
	s.At = time.Now()
	names := p.o.Names()
	for i := range s.Interfaces {
		s.Interfaces[i].Declared = names[s.Interfaces[i].Index]
	}
	return s, nil
}

// InterfaceStats reads the counters of the declared interfaces now, in the order of their
// indexes.
func (p *Poller) InterfaceStats(ctx context.Context) ([]*interfaces.InterfaceStats, error) {
	s, err := p.Read(ctx, Interfaces)
	if err != nil {
		return nil, err
	}
	var out []*interfaces.InterfaceStats
	for i := range s.Interfaces {
		if s.Interfaces[i].Declared != "" {
			out = append(out, s.Interfaces[i].Stats())
		}
	}
	return out, nil
}
