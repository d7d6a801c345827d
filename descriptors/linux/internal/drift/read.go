package drift

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// readState reads the actual state of each object from the kernel. The result
// has an entry for each object; an object that does not exist has a Gone event.
// An object whose namespace is not open any more does not exist either. For a route, What has all routes
// in its place.
func readState(spaces *netns.Set, objects []Object) (map[Object]kernel.Event, error) {
	actual := map[Object]kernel.Event{}
	byNS := map[kernel.ID][]Object{}
	for _, o := range objects {
		actual[o] = o.gone()
		byNS[o.NS] = append(byNS[o.NS], o)
	}
	for ns, objects := range byNS {
		space, ok := spaces.ByID(ns)
		if !ok {
			continue
		}
		err := readNamespace(space, objects, actual)
		space.Close()
		if err != nil {
			return nil, err
		}
	}
	return actual, nil
}

// readNamespace fills actual for the objects of one namespace. Interfaces are
// read one by one; each other kind is dumped at most once.
func readNamespace(space *netns.Space, objects []Object, actual map[Object]kernel.Event) error {
	kinds := map[Kind]bool{}
	var vrfs []Object
	note := func(what any) {
		o := objectOf(space.ID, what)
		if _, asked := actual[o]; asked {
			actual[o] = kernel.Event{What: what}
		}
	}
	for _, o := range objects {
		if o.Kind == KindVRFRules {
			vrfs = append(vrfs, o)
			continue
		}
		if o.Kind != KindInterface && o.Kind != KindMembership {
			kinds[o.Kind] = true
			continue
		}
		l, err := space.LinkByIndex(o.Link)
		if err == nil && l.Kind == "veth" { // of these alone the agent sets it
			var offload kernel.Offload
			offload, err = space.Offload(l.Name)
			l.Offload = &offload
		}
		if err == nil {
			actual[o] = kernel.Event{What: l}
		} else if !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return errors.Join(
		readVRFRules(space, vrfs, actual),
		dump(kinds[KindAddress], func() ([]kernel.Addr, error) { return space.Addrs(0) }, note),
		dump(kinds[KindRoute], func() ([]kernel.Route, error) {
			return space.Routes(func(r kernel.Route) bool { _, asked := actual[Route(space.ID, r)]; return asked && r.TOS == 0 })
		}, func(what any) {
			o := objectOf(space.ID, what)
			there, _ := actual[o].What.([]kernel.Route)
			actual[o] = kernel.Event{What: append(there, what.(kernel.Route))}
		}),
		dump(kinds[KindNeighbour], space.Neighbours, note),
	)
}

// readVRFRules fills actual for the rules that these VRFs need.
func readVRFRules(space *netns.Space, vrfs []Object, actual map[Object]kernel.Event) error {
	if len(vrfs) == 0 {
		return nil
	}
	complete, err := space.HasVRFRules()
	for _, o := range vrfs {
		actual[o] = kernel.Event{Gone: !complete, What: kernel.VRFRule{}}
	}
	return err
}

// dump calls note for each item that read returns, if the kind is needed.
func dump[T any](needed bool, read func() ([]T, error), note func(any)) error {
	if !needed {
		return nil
	}
	all, err := read()
	for _, one := range all {
		note(one)
	}
	return err
}
