package scheduler

// An Inspection is what the descriptor of a key makes of a message.
type Inspection struct {
	Descriptor   string // empty: none has the key
	Name         string // the part of the key that tells it from its like
	Dependencies []Dependency
	Derived      []string // keys
}

// Inspect takes the message m under key apart. Like Value it is pure, and may be
// called from any goroutine; m may also be a derived value, or an invalid one.
func (s *Scheduler) Inspect(key string, m Message) Inspection {
	d := s.registry.of(key)
	if d == nil {
		return Inspection{Name: key}
	}
	a := Inspection{Descriptor: d.name, Name: d.nameIn(key)}
	if m == nil || d.accepts(m) != nil {
		return a
	}
	v := s.prepare(d, key, m)
	a.Dependencies = v.Deps
	for _, part := range v.Derived {
		a.Derived = append(a.Derived, part.Key)
	}
	return a
}
