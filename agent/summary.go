package agent

import (
	"context"
	"slices"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator/publish"
)

// summarizers returns a task for each store that receives the agent's summary. usual has the
// fields that all of them share.
func (s stores) summarizers(names []string, usual publish.Summaries) (out []Task) {
	for _, name := range names {
		at := slices.IndexFunc(s, func(one store) bool { return one.name == name })
		if at < 0 {
			usual.Log.Warn("cannot publish the summary: the store is not configured", "source", name)
			continue
		}
		into := usual
		into.Name, into.Open = name, opener(s[at].connector)
		if into.Open == nil {
			usual.Log.Warn("cannot publish the summary: the store does not support it", "source", name)
			continue
		}
		out = append(out, Task{"summary into " + name, into.Run})
	}
	return out
}

// opener returns how keys without a session are written into a store; nil: they cannot be.
// Etcd needs a connection for that. Only agents that publish a summary have it.
func opener(connector kvdbsync.Connector) func(context.Context) (kvdbsync.Store, func(), error) {
	switch c := connector.(type) {
	case *etcd.Connector:
		return func(ctx context.Context) (kvdbsync.Store, func(), error) {
			client, err := c.Dial(context.WithoutCancel(ctx)) // it also writes that the agent has ended
			if err != nil {
				return nil, nil, err
			}
			return client, func() { _ = client.Close() }, nil
		}
	case kvdbsync.Store:
		return func(context.Context) (kvdbsync.Store, func(), error) { return c, func() {}, nil }
	}
	return nil
}
