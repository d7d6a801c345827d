package etcd

import "time"

// AskAfter sets how long a watch may be silent before the server is asked.
func (c *Connector) AskAfter(d time.Duration) { c.askAfter = d }
