package etcd

import "time"

// AskAfter sets how long a watch may be silent before the server is asked.
func (c *Connector) AskAfter(d time.Duration) { c.askAfter = d }

// Lacking reports that the servers do not answer questions about the progress of a watch.
func (c *Connector) Lacking() bool { return c.talent.lacking() }
