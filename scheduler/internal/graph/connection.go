package graph

// A Connection is shared by the values of some Kinds. The zero value is up.
//
//	phase      actual values   operations   the next phase
//	Up         known           begin        BeginRead: Reading. Disconnect: Down
//	Reading    known           wait         EndRead: Up. Disconnect: Down
//	Joining    none            wait         EndRead: Up. Disconnect: Down
//	Down       none            fail         BeginRead: Joining. Connect: Up
//
// While a connection is read back, none of its operations begins: so the result of the
// read-back is not older than their effect. Operations of other connections proceed.
type Connection struct {
	phase    connectionPhase
	reason   string  // why it is down, for people
	losses   int     // number of calls of Disconnect
	applying int     // detached creates and updates
	deleting int     // detached deletes
	held     []*Node // their operations wait for the end of a read-back or of detached operations
}

type connectionPhase uint8

const (
	up connectionPhase = iota
	reading
	joining
	down
)

// Down reports that the connection is down, or up again and not read back yet. A nil
// Connection never is.
func (c *Connection) Down() bool { return c != nil && c.phase >= joining }

// Lost reports that the connection is down. A nil Connection never is.
func (c *Connection) Lost() bool { return c != nil && c.phase == down }

// Losses returns how often the connection was lost. A read-back that began before the last
// loss is worthless.
func (c *Connection) Losses() int { return c.losses }

// Held returns the nodes with an operation that could run otherwise. The slice is valid
// until the graph changes.
func (c *Connection) Held() []*Node { return c.held }

// label says for people why the values of a connection that is down wait.
func (c *Connection) label() string {
	if c.phase == joining {
		return "the end of the read-back of its connection, which is up again"
	}
	return c.reason
}

// connection returns the connection of n, or nil.
func (n *Node) connection() *Connection {
	v := n.desired
	if v == nil {
		v = n.actual
	}
	if v == nil || v.Kind == nil {
		return nil
	}
	return v.Kind.Connection()
}

// disconnected reports that the connection of n is down, or not read back yet.
func (n *Node) disconnected() bool {
	return n.connection().Down()
}
