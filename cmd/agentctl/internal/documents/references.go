package documents

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
)

// Prefixes of the keys that values refer to.
const (
	linuxInterfaces = "config/linux/interfaces/v2/interface/"
	vppInterfaces   = "config/vpp/v2/interfaces/"
)

// target returns the prefix of the keys that a field refers to by name, or "".
func target(fd protoreflect.FieldDescriptor) string {
	switch fd.Name() {
	case "vpp_tap_if_name":
		return vppInterfaces
	case "linux_interface":
		return linuxInterfaces
	case "acl_name":
		return "config/vpp/acls/v2/acl/"
	case "bridge_domain":
		return "config/vpp/l2/v2/bridge-domain/"
	case "policy_bsid":
		return "config/vpp/srv6/v2/policy/"
	case "interface", "outgoing_interface", "incoming_interface", "interface_name", "receive_interface", "transmit_interface",
		"peer_if_name", "vrf_master_interface", "input_interface", "tx_interface", "rx_interface", "interface_from", "interface_to",
		"parent_name", "interface_with_ip", "wg_if_name", "external_interface":
	default:
		return ""
	}
	switch name := string(fd.FullName()); {
	case strings.HasPrefix(name, "ligato.linux."):
		return linuxInterfaces
	case strings.HasPrefix(name, "ligato.vpp."):
		return vppInterfaces
	}
	return ""
}

// missing adds a warning for each name that no document declares.
func (c *checker) missing() {
	for _, u := range c.uses {
		c.names(u, "", u.value.ProtoReflect())
	}
}

// names checks the names in a message and in those below it.
func (c *checker) names(u use, path string, m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		field := path + string(fd.Name())
		switch {
		case fd.IsMap():
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				c.names(u, fmt.Sprintf("%s[%d].", field, i), v.List().Get(i).Message())
			}
		case fd.IsList():
		case fd.Message() != nil:
			c.names(u, field+".", v.Message())
		case fd.Kind() == protoreflect.StringKind:
			if prefix := target(fd); prefix != "" && c.keys[prefix+v.String()].File == "" {
				named := &models.FieldError{Field: field}
				models.SpellFields(named, u.json)
				f := u.place(field)
				f.Text, f.Warning = fmt.Sprintf("%s: no file declares %s%s", named.Field, prefix, v.String()), true
				c.found = append(c.found, f)
			}
		}
		return true
	})
}
