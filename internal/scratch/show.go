package scratch

import (
	"cmp"
	"fmt"
	"io"
	"net"

	"github.com/vishvananda/netlink"
)

// Show prints the interfaces, addresses, IPv4 routes and permanent neighbours of
// a named network namespace, one a line, for people and tests alike.
func Show(out io.Writer, netns string) error {
	return InNetns(netns, func() error { return showHere(out) })
}

// showHere prints the network of the present namespace.
func showHere(out io.Writer) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing interfaces: %w", err)
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
		if err := showLink(out, link); err != nil {
			return err
		}
	}
	if err := showRoutes(out, names); err != nil {
		return err
	}
	return showNeighbours(out, names)
}

// showLink prints a link with its addresses.
func showLink(out io.Writer, link netlink.Link) error {
	state := "down"
	if link.Attrs().Flags&net.FlagUp != 0 {
		state = "up"
	}
	fmt.Fprintf(out, "interface %s %s, %s, mtu %d", link.Attrs().Name, link.Type(), state, link.Attrs().MTU)
	if mac := link.Attrs().HardwareAddr; len(mac) > 0 {
		fmt.Fprintf(out, ", %s", mac)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("listing addresses of %s: %w", link.Attrs().Name, err)
	}
	for _, addr := range addrs {
		fmt.Fprintf(out, ", %s", addr.IPNet)
	}
	fmt.Fprintln(out)
	return nil
}

// showRoutes prints the IPv4 routes.
func showRoutes(out io.Writer, names map[int]string) error {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing routes: %w", err)
	}
	for _, route := range routes {
		fmt.Fprintf(out, "route %s", cmp.Or(route.Dst.String(), "default"))
		if route.Gw != nil {
			fmt.Fprintf(out, " via %s", route.Gw)
		}
		fmt.Fprintf(out, " out of %s\n", names[route.LinkIndex])
	}
	return nil
}

// showNeighbours prints the permanent IPv4 neighbours: others come and go with the traffic.
func showNeighbours(out io.Writer, names map[int]string) error {
	neighbours, err := netlink.NeighList(0, netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("listing neighbours: %w", err)
	}
	for _, n := range neighbours {
		if n.State&netlink.NUD_PERMANENT != 0 {
			fmt.Fprintf(out, "neighbour %s at %s on %s\n", n.IP, n.HardwareAddr, names[n.LinkIndex])
		}
	}
	return nil
}
