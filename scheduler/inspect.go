package scheduler

// An Inspection is a descriptor's view of a message.
type Inspection struct {
	Descriptor   string // empty: no descriptor has the key
	Name         string // the key without the descriptor's prefix
	Dependencies []Dependency
	Derived      []string // keys
}

// Inspect returns the parts of the message m under key. Like Value it is pure, and any
// goroutine may call it; m may also be a derived or an invalid value.
func (s *Scheduler) Inspect(key string, m Message) Inspection {
	d := s.registry.Of(key)
	if d == nil {
		return Inspection{Name: key}
	}
	a := Inspection{Descriptor: d.Name, Name: d.NameIn(key)}
	if m == nil || d.Accepts(m) != nil {
		return a
	}
	v := s.registry.Actual(d, key, m)
	a.Dependencies = v.Deps
	for _, part := range v.Derived {
		a.Derived = append(a.Derived, part.Key)
	}
	return a
}
