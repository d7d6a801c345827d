package wireguard

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"

	vppwg "go.fd.io/govpp/binapi/wireguard"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/wireguard"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// Peers implements the verbs, and reports states. The scheduler calls verbs of different values
// concurrently; Take is for the connection's goroutine; all else runs in Run.
type Peers struct {
	Options
	observe func(...scheduler.Observed)
	changed wake.Signal // set when states may have changed

	mu      sync.Mutex        // guards all fields below
	numbers map[uint32]string // keys of declared peers by their number in VPP
	states  map[string]bool   // keys of states that were reported
}

func newPeers(o Options, observe func(...scheduler.Observed)) *Peers {
	return &Peers{Options: o, observe: observe, changed: wake.New(), numbers: map[uint32]string{}, states: map[string]bool{}}
}

// stateDescriptor observes peers. A declared peer has exactly one of the keys of its states.
func (p *Peers) stateDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:          StateName,
		Prefix:        keys.WireguardPeers,
		Match:         func(key string) bool { _, _, ok := keys.ParseWireguardPeerState(key); return ok },
		Retrieve:      p.retrieveStates,
		RetrieveAfter: []string{Name},
	}
}

// retrieveStates yields one key per declared peer. Run reports changes in between.
func (p *Peers) retrieveStates(ctx context.Context, _ []scheduler.Desired[*emptypb.Empty]) iter.Seq2[scheduler.Found[*emptypb.Empty, struct{}], error] {
	return reading.Of(func(learns bool, yield func(scheduler.Found[*emptypb.Empty, struct{}], error) bool) {
		_, now, err := p.read(ctx, learns)
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return
		}
		if err != nil {
			yield(scheduler.Found[*emptypb.Empty, struct{}]{}, err)
			return
		}
		for key := range now {
			if !yield(scheduler.Found[*emptypb.Empty, struct{}]{Key: key, Value: &emptypb.Empty{}, Foreign: true}, nil) {
				return
			}
		}
	})
}

// Take takes a message wireguard_peer_event. It only wakes Run, which reads all states: an event
// has the number of a peer, which another peer can have by now.
func (p *Peers) Take([]byte) { p.changed.Set() }

// Run reports states until ctx ends.
func (p *Peers) Run(ctx context.Context) error {
	for {
		select {
		case <-p.changed.C():
		case <-ctx.Done():
			return nil
		}
		before, now, err := p.read(ctx, true)
		if err != nil {
			continue // the connection is lost; the next one reads everything back
		}
		var out []scheduler.Observed
		for key := range before {
			if !now[key] {
				out = append(out, scheduler.Observed{Key: key})
			}
		}
		for key := range now {
			out = append(out, scheduler.Observed{Key: key, Value: &emptypb.Empty{}})
		}
		p.observe(out...)
	}
}

// read returns the keys of states: those of the last read that learned, and those of now.
func (p *Peers) read(ctx context.Context, learns bool) (before, now map[string]bool, err error) {
	existing, err := p.dump(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now = map[string]bool{}
	model := models.For[*wireguard.Peer]().Model
	for _, d := range existing {
		key, declared := p.numbers[d.PeerIndex]
		if !declared {
			continue
		}
		if name, ok := model.NameOf(key); ok {
			now[keys.WireguardPeerState(name, stateOf(d.Flags))] = true
		}
	}
	before = p.states
	if learns {
		p.states = maps.Clone(now)
	}
	return before, now, nil
}

// stateOf returns the state that flags mean.
func stateOf(flags vppwg.WireguardPeerFlags) string {
	switch {
	case flags&vppwg.WIREGUARD_PEER_STATUS_DEAD != 0:
		return keys.WireguardDead
	case flags&vppwg.WIREGUARD_PEER_ESTABLISHED != 0:
		return keys.WireguardEstablished
	}
	return keys.WireguardHandshake
}

// known notes the number of a peer that was made, and has its state reported.
func (p *Peers) known(number uint32, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[number] = key
	p.changed.Set()
}

// gone drops a peer that is being removed, and has its state withdrawn.
func (p *Peers) gone(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.numbers, func(_ uint32, of string) bool { return of == key })
	p.changed.Set()
}

// reset replaces all numbers: VPP was read back.
func (p *Peers) reset(numbers map[uint32]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers = numbers
}
