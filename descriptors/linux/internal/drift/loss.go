package drift

import "github.com/keyplane/keyplane/descriptors/linux/internal/kernel"

// A Loss says how a route was lost that has left others in its place. Of a neighbour, which is alone in its place, it has
// nothing to say.
type Loss struct {
	// Taker is the route that replaced it. Without one somebody has removed the route.
	Taker kernel.Route
	// Behind says that another program has put its route before that of the agent.
	Behind bool
}

// loss is the loss of the route of a key.
type loss struct {
	key string
	Loss
}

// fate is the loss of a route so far.
type fate struct {
	Loss
	removed bool // somebody has removed the route, and no later route replaces it
}

// note takes in an event about a route in the place o. It reports whether the route of the agent may be
// lost: the event is about this very route, or a route has replaced another one. A route that comes or
// goes beside it is no loss.
func (r *record) note(o Object, e kernel.Event) bool {
	one, what := r.objects[o], e.What.(kernel.Route)
	if one == nil || what.TOS != 0 {
		return false
	}
	if one.fate == nil {
		one.fate = &fate{}
	}
	switch ours := one.Route.PartOf(what); {
	case e.Gone && ours:
		one.fate.removed = true
	case e.Gone || ours && !e.Replaces:
		return false
	case e.Replaces:
		if !ours && !one.fate.removed {
			one.fate.Taker = what
		}
	default:
		one.fate.Behind = one.fate.Behind || !e.Behind
		return false
	}
	return true
}

// loss returns how the route of a key was lost, or is being lost. ok: there was one.
func (r *record) loss(o Object, key string) (l Loss, ok bool) {
	if lost, ok := r.losses[o]; ok {
		return lost.Loss, lost.key == key
	}
	one := r.objects[o]
	if one == nil || one.Key != key {
		return Loss{}, false
	}
	if one.fate != nil {
		l = one.fate.Loss
	}
	return l, true
}
