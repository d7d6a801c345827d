package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// An agent of vpp-agent 3.5 has no key that owns its label. While it runs, it writes its health into every store, once in
// a period. So this agent learns of one that still runs when it takes its place.
const (
	olderHealthPeriod = 10 * time.Second
	// How often the key is read until the older agent has been silent for long enough.
	olderLookPeriod = olderHealthPeriod / 2
	olderSilence    = 5 // looks
)

// An olderHealth is the part of such a health that tells who wrote it, and when. Its numbers are texts in the JSON of
// protobuf, and were numbers in earlier releases; a json.Number is either.
type olderHealth struct {
	StartTime  json.Number `json:"start_time"`
	LastUpdate json.Number `json:"last_update"`
}

// predecessors returns a task for each store that can be read. started is the start of this agent in its own health.
func (s stores) predecessors(root string, started time.Time, log *slog.Logger) (out []Task) {
	own := json.Number(strconv.FormatInt(started.Unix(), 10))
	for _, one := range s {
		from, able := one.connector.(kvdbsync.Store)
		if !able {
			continue
		}
		p := predecessor{store: from, key: root + healthKeys + "agent", started: own, log: log.With("source", one.name)}
		out = append(out, Task{"agents before this one in " + one.name, p.run})
	}
	return out
}

// A predecessor warns of an older agent that runs beside this one.
type predecessor struct {
	store   kvdbsync.Store
	key     string
	started json.Number
	log     *slog.Logger
}

// run reads the key until nobody else writes it any more. A store that does not answer says nothing.
func (p predecessor) run(ctx context.Context) error {
	turn := time.NewTicker(olderLookPeriod)
	defer turn.Stop()
	first, running, silent := true, false, 0
	var last json.Number
	for silent < olderSilence {
		h, err := p.read(ctx)
		switch {
		case err != nil:
			p.log.Debug("the health of an older agent cannot be read", "key", p.key, "err", err)
		case first:
			// The key outlives its writer, so what it has at the start proves nothing.
			first, last = false, h.LastUpdate
		case h.LastUpdate == last || h.StartTime == p.started:
			silent++
		default:
			if !running {
				p.log.Warn("an agent of vpp-agent 3.5 runs with the same label: two agents of a label undo each other's work; end it", "key", p.key, "last_update", h.LastUpdate)
			}
			running, silent, last = true, 0, h.LastUpdate
		}
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
	}
	if running {
		p.log.Info("the agent of vpp-agent 3.5 with the same label has ended", "key", p.key)
	}
	return nil
}

// read returns the health in the store. A missing one, and a text of somebody else, are none.
func (p predecessor) read(ctx context.Context) (h olderHealth, err error) {
	ctx, cancel := context.WithTimeout(ctx, olderLookPeriod)
	defer cancel()
	text, err := p.store.Get(ctx, p.key)
	if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
		return h, err
	}
	_ = json.Unmarshal(text, &h) // another text tells nothing of an agent
	return h, nil
}
