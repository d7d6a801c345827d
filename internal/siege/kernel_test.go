package siege

import (
	"context"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
)

// receiveBuffer is how many bytes of changes the kernel keeps for the watcher.
const receiveBuffer = 8 << 20

// watchAddresses tells seen of each address that comes or goes in the network of the test,
// until ctx ends. Where the kernel has lost changes, it tells lost first, and begins again.
func watchAddresses(ctx context.Context, seen func(addr string, there bool), lost func()) error {
	for ctx.Err() == nil {
		changes := make(chan netlink.AddrUpdate, 1024)
		err := netlink.AddrSubscribeWithOptions(changes, ctx.Done(), netlink.AddrSubscribeOptions{
			ReceiveBufferSize: receiveBuffer, ErrorCallback: func(error) {}, // the channel is closed then
		})
		if err != nil {
			return fmt.Errorf("watching addresses: %w", err)
		}
		lost()
		for c := range changes {
			seen(c.LinkAddress.String(), c.NewAddr)
		}
	}
	return nil
}

// addressesOf are the IPv4 addresses of the links whose names begin with a prefix, by name.
func addressesOf(prefix string) (map[string]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	out, names := map[string]string{}, map[int]string{}
	for _, link := range links {
		if name := link.Attrs().Name; strings.HasPrefix(name, prefix) {
			out[name], names[link.Attrs().Index] = "", name
		}
	}
	for _, addr := range addrs {
		if name := names[addr.LinkIndex]; name != "" {
			out[name] = strings.TrimPrefix(out[name]+" "+addr.IPNet.String(), " ")
		}
	}
	return out, nil
}
