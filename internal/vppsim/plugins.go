package vppsim

import (
	"github.com/keyplane/keyplane/internal/vppsim/abf"
	"github.com/keyplane/keyplane/internal/vppsim/acl"
	"github.com/keyplane/keyplane/internal/vppsim/afpacket"
	"github.com/keyplane/keyplane/internal/vppsim/bond"
	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/dhcp"
	"github.com/keyplane/keyplane/internal/vppsim/dns"
	"github.com/keyplane/keyplane/internal/vppsim/gre"
	"github.com/keyplane/keyplane/internal/vppsim/gtpu"
	"github.com/keyplane/keyplane/internal/vppsim/iface"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/ipfix"
	"github.com/keyplane/keyplane/internal/vppsim/ipip"
	"github.com/keyplane/keyplane/internal/vppsim/ipsec"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
	"github.com/keyplane/keyplane/internal/vppsim/l3xc"
	"github.com/keyplane/keyplane/internal/vppsim/memif"
	"github.com/keyplane/keyplane/internal/vppsim/nat"
	"github.com/keyplane/keyplane/internal/vppsim/neighbours"
	"github.com/keyplane/keyplane/internal/vppsim/punt"
	"github.com/keyplane/keyplane/internal/vppsim/rdcp"
	"github.com/keyplane/keyplane/internal/vppsim/rdma"
	"github.com/keyplane/keyplane/internal/vppsim/span"
	"github.com/keyplane/keyplane/internal/vppsim/srv6"
	"github.com/keyplane/keyplane/internal/vppsim/stn"
	"github.com/keyplane/keyplane/internal/vppsim/tap"
	"github.com/keyplane/keyplane/internal/vppsim/vmxnet3"
	"github.com/keyplane/keyplane/internal/vppsim/vrrp"
	"github.com/keyplane/keyplane/internal/vppsim/vxlan"
	"github.com/keyplane/keyplane/internal/vppsim/vxlangpe"
	"github.com/keyplane/keyplane/internal/vppsim/wireguard"
)

// register makes all plugins of one VPP. A new plugin is one line here. It returns those that
// the methods of Sim need.
func register(vpp *core.VPP) told {
	tables := ip.New(vpp)
	switching := l2.New(vpp)

	iface.New(vpp)
	neighbours.New(vpp, tables)
	l3xc.New(vpp)
	span.New(vpp, switching)
	acl.New(vpp, switching)
	abf.New(vpp)
	stn.New(vpp)
	nat.New(vpp, tables)
	dns.New(vpp)
	srv6.New(vpp, tables, switching)
	ipfix.New(vpp, tables)
	punt.New(vpp)

	tap.New(vpp)
	memif.New(vpp)
	afpacket.New(vpp)
	rdma.New(vpp)
	vmxnet3.New(vpp)
	bond.New(vpp)

	vxlan.New(vpp, tables)
	vxlangpe.New(vpp, tables, switching)
	gtpu.New(vpp, tables, switching)
	gre.New(vpp, tables)
	ipip.New(vpp, tables)
	ipsec.New(vpp, tables)

	return told{dhcp.New(vpp, tables), wireguard.New(vpp), vrrp.New(vpp, tables), rdcp.New(vpp, tables)}
}
