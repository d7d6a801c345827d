package limits

import (
	"net"
	"net/netip"
	"regexp"
	"strings"

	"github.com/keyplane/keyplane/proto/ligato"
)

// A Format is a notation of texts, as descriptions name it.
type Format string

// Formats of texts.
const (
	IP          Format = "IP address"
	IPv4        Format = "IPv4 address"
	IPv6        Format = "IPv6 address"
	IPOrNet     Format = "IP address or network"
	IPv4OrNet   Format = "IPv4 address or network"
	IPv6OrNet   Format = "IPv6 address or network"
	Network     Format = "network"
	IPv4Network Format = "IPv4 network"
	IPv6Network Format = "IPv6 network"
	// Subnet is a Network without bits behind the prefix length.
	Subnet   Format = "network without host bits"
	MAC      Format = "MAC address"
	HostName Format = "name of a Linux interface, up to 15 bytes"
	Key32    Format = "32 bytes in base64"
	Hex      Format = "bytes in hexadecimal digits"
)

// A notation is a format in detail.
type notation struct {
	valid   func(string) bool
	pattern string // of JSON Schema; a text that does not match is invalid
	example string
}

// formatOf returns the format of a hint. "With mask" means an address with its prefix length.
func formatOf(hint ligato.LigatoOptions_Type) Format {
	return map[ligato.LigatoOptions_Type]Format{
		ligato.LigatoOptions_IP: IP, ligato.LigatoOptions_IPV4: IPv4, ligato.LigatoOptions_IPV6: IPv6,
		ligato.LigatoOptions_IP_WITH_MASK: Network, ligato.LigatoOptions_IPV4_WITH_MASK: IPv4Network, ligato.LigatoOptions_IPV6_WITH_MASK: IPv6Network,
		ligato.LigatoOptions_IP_OPTIONAL_MASK: IPOrNet, ligato.LigatoOptions_IPV4_OPTIONAL_MASK: IPv4OrNet, ligato.LigatoOptions_IPV6_OPTIONAL_MASK: IPv6OrNet,
	}[hint]
}

// Parts of patterns. They are necessary conditions, so that a schema never refuses a valid text.
const (
	v4Chars  = `[0-9.]+`
	anyChars = `[0-9A-Fa-f:.]+`
	v6Chars  = `[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*`
	length   = `/[0-9]{1,3}`
)

// detail returns a format in detail, and false for a format of another program.
func (f Format) detail() (notation, bool) { n, ok := notations[f]; return n, ok }

// key32 and hexBytes are also patterns of JSON Schema.
var (
	key32    = regexp.MustCompile(`^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$`)
	hexBytes = regexp.MustCompile(`^([0-9A-Fa-f]{2})*$`)
)

// notations never changes. It is made once: a value may have 100,000 texts to check.
var notations = map[Format]notation{
	IP:          {address(anyFamily), full(anyChars), "10.0.0.1"},
	IPv4:        {address(netip.Addr.Is4), full(v4Chars), "10.0.0.1"},
	IPv6:        {address(isV6), full(v6Chars), "fd00::1"},
	IPOrNet:     {either(address(anyFamily), prefix(anyFamily)), full(anyChars + "(" + length + ")?"), "10.0.0.1/24"},
	IPv4OrNet:   {either(address(netip.Addr.Is4), prefix(netip.Addr.Is4)), full(v4Chars + "(" + length + ")?"), "10.0.0.1/24"},
	IPv6OrNet:   {either(address(isV6), prefix(isV6)), full(v6Chars + "(" + length + ")?"), "fd00::1/64"},
	Network:     {prefix(anyFamily), full(anyChars + length), "10.0.0.0/24"},
	IPv4Network: {prefix(netip.Addr.Is4), full(v4Chars + length), "10.0.0.0/24"},
	IPv6Network: {prefix(isV6), full(v6Chars + length), "fd00::/64"},
	Subnet:      {isSubnet, full(anyChars + length), "10.0.0.0/24"},
	HostName:    {isHostName, "^[^/:% ]{1,15}$", "eth0"},
	MAC:         {isMAC, full(`[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|([0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}`), "02:00:00:00:00:01"},
	Key32:       {key32.MatchString, key32.String(), "4Mrj93TnPJzh/EGQSVNrGLXQqAYLe7BMh7Ro3d2TQlQ="},
	Hex:         {hexBytes.MatchString, hexBytes.String(), "0a1b"},
}

// full returns a pattern that matches the whole text.
func full(pattern string) string { return "^(" + pattern + ")$" }

func anyFamily(netip.Addr) bool { return true }

func isV6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

// address returns a function that reports whether a text is an address that fits. A zone is
// refused before it is parsed, because netip keeps each zone that it has parsed for a while.
func address(fits func(netip.Addr) bool) func(string) bool {
	return func(s string) bool {
		if strings.Contains(s, "%") {
			return false
		}
		a, err := netip.ParseAddr(s)
		return err == nil && fits(a)
	}
}

// prefix returns a function that reports whether a text is a network that fits.
func prefix(fits func(netip.Addr) bool) func(string) bool {
	return func(s string) bool {
		if strings.Contains(s, "%") {
			return false
		}
		p, err := netip.ParsePrefix(s)
		return err == nil && fits(p.Addr())
	}
}

func either(a, b func(string) bool) func(string) bool {
	return func(s string) bool { return a(s) || b(s) }
}

// isSubnet reports whether s is a network without bits of a host.
func isSubnet(s string) bool {
	p, err := netip.ParsePrefix(s)
	return err == nil && p == p.Masked()
}

// isHostName reports whether the kernel takes s, as it is, as the name of an interface.
func isHostName(s string) bool { return WrongLinkName(s) == "" }

// isMAC reports whether s is a MAC address of Ethernet, which has 6 bytes.
func isMAC(s string) bool {
	mac, err := net.ParseMAC(s)
	return err == nil && len(mac) == 6
}

// Valid reports whether a text has the format. Every text has the empty one.
func (f Format) Valid(s string) bool {
	n, ok := f.detail()
	return !ok || n.valid(s)
}

// Example returns a valid text, or "" for the empty format.
func (f Format) Example() string { n, _ := f.detail(); return n.example }

// Pattern returns a regular expression that each valid text of the field matches, and the empty
// text; or "" if there is none. It is for JSON schemas. Some texts match it and are invalid, such
// as 10.0.0.999.
func (l Limits) Pattern() string {
	n, ok := l.Format.detail()
	if !ok {
		return ""
	}
	pattern := strings.TrimSuffix(strings.TrimPrefix(n.pattern, "^"), "$")
	if l.Host {
		pattern += "(" + length + ")?"
	}
	if l.Alloc {
		pattern += "|alloc:.+"
	}
	if l.Required {
		return "^(" + pattern + ")$"
	}
	return "^(" + pattern + ")?$"
}
