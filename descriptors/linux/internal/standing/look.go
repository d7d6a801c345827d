package standing

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// look asks the kernel what is so of each thing now.
func look(spaces *netns.Set, things []Thing) (map[Thing]kernel.Event, error) {
	seen := map[Thing]kernel.Event{}
	byNS := map[kernel.ID][]Thing{}
	for _, t := range things {
		seen[t] = t.gone()
		byNS[t.NS] = append(byNS[t.NS], t)
	}
	for ns, things := range byNS {
		space, ok := spaces.ByID(ns)
		if !ok {
			continue // all of it is gone
		}
		err := lookIn(space, things, seen)
		space.Close()
		if err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// lookIn notes what there is. What is listed at all is listed once.
func lookIn(space *netns.Space, things []Thing, seen map[Thing]kernel.Event) error {
	sorts := map[Sort]bool{}
	note := func(what any) {
		t := thingOf(space.ID, what)
		if _, asked := seen[t]; asked {
			seen[t] = kernel.Event{What: what}
		}
	}
	for _, t := range things {
		if t.Sort != AnInterface && t.Sort != AMembership {
			sorts[t.Sort] = true
			continue
		}
		l, err := space.LinkByIndex(t.Link)
		if err == nil {
			seen[t] = kernel.Event{What: l}
		} else if !errors.Is(err, unix.ENODEV) {
			return err
		}
	}
	return errors.Join(
		list(sorts[AnAddress], func() ([]kernel.Addr, error) { return space.Addrs(0) }, note),
		list(sorts[ARoute], func() ([]kernel.Route, error) {
			return space.Routes(func(r kernel.Route) bool { _, asked := seen[Route(space.ID, r)]; return asked })
		}, note),
		list(sorts[ANeighbour], space.Neighbours, note),
	)
}

func list[T any](asked bool, read func() ([]T, error), note func(any)) error {
	if !asked {
		return nil
	}
	all, err := read()
	for _, one := range all {
		note(one)
	}
	return err
}
