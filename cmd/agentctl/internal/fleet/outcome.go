package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/kvdbsync"
)

// An outcome is what the published status says about a label.
type outcome struct {
	done, failed bool
	text         string
}

// statusKey returns the key of the published status of a declared key.
func statusKey(key string) string {
	label, rest, _ := strings.Cut(strings.TrimPrefix(key, session.AllAgents), "/")
	return session.AllAgents + label + "/" + statusPrefix + strings.TrimPrefix(rest, configPrefix)
}

// readRemoved reads the published status of the keys that changes remove.
func (j *job) readRemoved(ctx context.Context, store kvdbsync.Store, changes []kvdbsync.Pair) error {
	j.removed = map[string][]byte{}
	for _, c := range changes {
		if c.Value != nil {
			continue
		}
		text, err := store.Get(ctx, statusKey(c.Key))
		if err != nil && !errors.Is(err, kvdbsync.ErrNotFound) {
			return err
		}
		j.removed[c.Key] = text
	}
	return nil
}

// look reads the published status of the keys of a label.
//
//	change  | status                     | meaning
//	value   | none                       | the agent has not acted yet
//	value   | CONFIGURED                 | done
//	removal | that before the removal    | the agent has not acted yet
//	removal | none, or REMOVED           | done
//	removal | none, as before            | unknown, unless the agent has acted on a value of the transaction
//	any     | INVALID or FAILED          | failed
//	any     | UNIMPLEMENTED              | failed
//	any     | another one                | not done yet
func (o *rollout) look(ctx context.Context, j *job) outcome {
	for _, c := range j.changes {
		text, err := o.store.Get(ctx, statusKey(c.Key))
		var of outcome
		switch {
		case err == nil:
			of = j.withStatus(c, text)
		case errors.Is(err, kvdbsync.ErrNotFound):
			of = j.withoutStatus(c)
		default: // the store may be back before the time is over
			of = outcome{text: err.Error()}
		}
		if !of.done {
			return of
		}
	}
	text := "configured"
	if !j.put {
		text = "unchanged, configured"
	}
	return outcome{done: true, text: text}
}

// withStatus returns the outcome of a change whose key has a published status.
func (j *job) withStatus(c kvdbsync.Pair, text []byte) outcome {
	short := session.ShortKey(c.Key)
	var st keyStatus
	if json.Unmarshal(text, &st) != nil {
		return outcome{text: short + ": its status is unreadable"}
	}
	before, removed := j.removed[c.Key]
	switch {
	case st.State == "CONFIGURED" && len(st.derived()) == 0 && c.Value != nil, st.State == "REMOVED" && c.Value == nil:
		return outcome{done: true}
	case removed && bytes.Equal(text, before):
		return outcome{text: short + " is not removed yet: its status is as before, " + st.State}
	case st.hopeless():
		return outcome{failed: true, text: st.line(short)}
	}
	return outcome{text: st.line(short)}
}

// withoutStatus returns the outcome of a change whose key has no published status.
func (j *job) withoutStatus(c kvdbsync.Pair) outcome {
	short := session.ShortKey(c.Key)
	before, removed := j.removed[c.Key]
	switch {
	case c.Value != nil:
		return outcome{text: short + ": no status; does the agent run, and publish it (publish-status)?"}
	case removed && before == nil && !j.declares:
		return outcome{text: short + ": no status, also before its removal; does the agent run, and publish it (publish-status)?"}
	}
	return outcome{done: true}
}

// hopeless reports that the value, or one derived from it, will not be applied without a change.
func (st keyStatus) hopeless() bool {
	derived := st.derived()
	return slices.ContainsFunc([]string{"INVALID", "FAILED", "UNIMPLEMENTED"}, func(state string) bool { return st.State == state || derived[state] > 0 })
}

// line returns a status on one line.
func (st keyStatus) line(key string) string {
	out := key + " is " + st.State
	if why := strings.Join(append(slices.Clone(st.Details), st.Error), ", "); why != "" {
		out += ": " + strings.TrimSuffix(why, ", ")
	}
	return out
}
