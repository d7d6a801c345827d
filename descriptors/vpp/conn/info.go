package conn

import "time"

// Info is how the connection is, for people.
type Info struct {
	Socket      string
	Connected   bool
	Since       time.Time // of Connected; zero: it was never tried
	About       About     // of this connection, or of the last one
	Connections int       // so many there have been
	Err         error     // why there is none, or why the last one ended
	ErrAt       time.Time
}

// Info tells how the connection is.
func (m *Manager) Info() Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.info
}

func (m *Manager) isUp(about About) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.info.Connected, m.info.Since, m.info.About = true, time.Now(), about
	m.info.Connections++
}

func (m *Manager) isDown(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.info.Connected || m.info.Since.IsZero() {
		m.info.Since = now
	}
	m.info.Connected, m.info.Err, m.info.ErrAt = false, why, now
}
