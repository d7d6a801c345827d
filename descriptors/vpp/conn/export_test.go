package conn

// Limit bounds the details that answer one request of c.
func (c *Conn) Limit(details, bytes int) { c.limits = limits{details, bytes} }
