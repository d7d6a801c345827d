package conn

import "time"

// Info is the state of the connection, for people.
type Info struct {
	Socket      string
	Connected   bool
	Since       time.Time // the time of the last change of Connected; zero: it was never tried
	About       About     // of this connection, or of the last one
	Connections int       // the number of connections so far
	Err         error     // the reason that there is no connection, or that the last one ended
	ErrAt       time.Time
}

// Info returns the state of the connection.
func (m *Manager) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

// isUp notes a new connection.
func (m *Manager) isUp(about About) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.Connected, m.info.Since, m.info.About = true, time.Now(), about
	m.info.Connections++
}

// isDown notes a lost connection, or another failed attempt; Since keeps the time of the
// loss.
func (m *Manager) isDown(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.info.Connected || m.info.Since.IsZero() {
		m.info.Since = now
	}
	m.info.Connected, m.info.Err, m.info.ErrAt = false, why, now
}
