package etcd

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// AskAfter sets how long a watch may be silent before the server is asked.
func (c *Connector) AskAfter(d time.Duration) { c.askAfter = d }

// Lacking reports that the servers do not answer questions about the progress of a watch.
func (c *Connector) Lacking() bool { return c.progress.lacking() }

// Renew renews a session now. Its TTL must be so long that the session does not renew itself meanwhile.
func Renew(ctx context.Context, s kvdbsync.Session) error { return s.(*session).renew(ctx) }
