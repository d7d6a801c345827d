package models_test

import (
	"fmt"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

func Example() {
	v, err := models.BuiltIn().Decode("config/linux/l3/v2/route/10.2.0.0/16/veth1",
		[]byte(`{"dst_network": "10.2.0.0/16", "outgoing_interface": "veth1", "gw_addr": "10.1.0.2"}`))
	fmt.Println(v.(*l3.Route).GetGwAddr(), err)

	_, err = models.BuiltIn().Decode("config/linux/l3/v2/route/10.2.0.0/16/veth1",
		[]byte(`{"dst_network": "10.2.0.0/16", "outgoing_if": "veth1"}`))
	fmt.Println(err)

	key, err := models.For[*l3.Route]().Key(&l3.Route{DstNetwork: "10.2.3.4/16", OutgoingInterface: "veth1"})
	fmt.Println(key, err)
	// Output:
	// 10.1.0.2 <nil>
	// outgoing_if: expected a known field: outgoing_interface, scope, dst_network, gw_addr, metric, on_link
	// config/linux/l3/v2/route/10.2.0.0/16/veth1 <nil>
}
