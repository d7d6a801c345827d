// Package keys builds and parses the keys of Linux values without a model: parts of an
// interface, notifications from the kernel, and properties.
//
// Users see these keys in dumps and in the transaction log, and values of other
// descriptors depend on them. Their format is therefore fixed. A builder writes Invalid in
// place of an empty component; a parser returns it unchanged, and the validation of the
// value rejects it.
//
// The parsers are fuzzed: each key that a parser accepts is built again by its builder.
package keys

import "strings"

// Prefixes of the keys.
const (
	Interface     = "linux/interface/"
	HostNames     = "linux/interface/host-name/"
	States        = "linux/interface/state/"
	LinkLocal     = "linux/link-local-route/"
	VRFRules      = "linux/vrf-rules/"
	Microservices = "linux/microservice/"
	Namespaces    = "linux/netns/"
)

// Invalid stands for a component that is missing.
const Invalid = "<invalid>"

// HostName is the key of a link of the agent's own namespace that is up.
func HostName(host string) string { return HostNames + or(host) }

// HostAddress is the key of an address ("10.0.0.1/24") of a link that is up.
func HostAddress(host, addr string) string { return HostNames + or(host) + "/address/" + or(addr) }

// HostVRF is the key of the membership of a host link that is up in a VRF link.
func HostVRF(host, vrf string) string { return HostVRFs(host) + or(vrf) }

// HostVRFs returns the prefix of the keys of HostVRF for any VRF.
func HostVRFs(host string) string { return HostNames + or(host) + "/vrf-host-name/" }

// State is the key of the enabled or disabled state of an interface.
func State(iface string, up bool) string {
	if up {
		return States + iface + "/UP"
	}
	return States + iface + "/DOWN"
}

// VRF is the key of the membership of an interface in a VRF, both by logical name.
func VRF(iface, vrf string) string { return Interface + or(iface) + "/vrf/" + or(vrf) }

// VRFRulesOf is the key of the rules that send packets to the tables of VRFs, as far as a VRF needs them.
func VRFRulesOf(vrf string) string { return VRFRules + or(vrf) }

// ParseVRFRules reads a key of VRFRulesOf.
func ParseVRFRules(key string) (vrf string, ok bool) {
	vrf, ok = strings.CutPrefix(key, VRFRules)
	return vrf, ok && vrf != ""
}

// Microservice is the key of a container that runs, by its label.
func Microservice(label string) string { return Microservices + label }

// Namespace is the key of a network namespace that has a name.
func Namespace(name string) string { return Namespaces + name }

// LinkLocalRoute is the key of a destination on the link itself, in the notation of its
// route.
func LinkLocalRoute(iface, dst string) string { return LinkLocalRoutes(iface) + dst }

// LinkLocalRoutes returns the prefix of the keys of LinkLocalRoute for one interface.
func LinkLocalRoutes(iface string) string { return LinkLocal + iface + "/dest-address/" }

// ParseVRF reads a key of VRF.
func ParseVRF(key string) (iface, vrf string, ok bool) {
	rest, ok := part(key)
	if !ok || has(rest, "address") {
		return "", "", false
	}
	return around(rest, "/vrf/")
}

// ParseHostAddress reads a key of HostAddress.
func ParseHostAddress(key string) (host, addr string, ok bool) {
	rest, ok := strings.CutPrefix(key, HostNames)
	if !ok {
		return "", "", false
	}
	return around(rest, "/address/")
}

// ParseHostVRF reads a key of HostVRF.
func ParseHostVRF(key string) (host, vrf string, ok bool) {
	rest, ok := strings.CutPrefix(key, HostNames)
	if !ok {
		return "", "", false
	}
	return around(rest, "/vrf-host-name/")
}

// ParseState reads a key of State. An interface with a slash in its name has a
// state that does not parse.
func ParseState(key string) (iface string, up, ok bool) {
	rest, ok := strings.CutPrefix(key, States)
	name, state, cut := strings.Cut(rest, "/")
	ok = ok && cut && name != "" && (state == "UP" || state == "DOWN")
	if !ok {
		return "", false, false
	}
	return name, state == "UP", true
}

// InterfaceOf returns the interface with which a key comes, or each key with that prefix. It is false for
// keys of links that the agent does not manage.
func InterfaceOf(keyOrPrefix string) (iface string, ok bool) {
	if rest, is := strings.CutPrefix(keyOrPrefix, States); is {
		iface, _, ok = strings.Cut(rest, "/")
		return iface, ok
	}
	rest, ok := part(keyOrPrefix)
	for _, marker := range []string{"/address/", "/vrf/"} {
		if before, _, has := strings.Cut(rest, marker); has && ok {
			return before, true
		}
	}
	return "", false
}

// ParseLinkLocalRoute reads a key of LinkLocalRoute.
func ParseLinkLocalRoute(key string) (iface, dst string, ok bool) {
	rest, ok := strings.CutPrefix(key, LinkLocal)
	if !ok {
		return "", "", false
	}
	return around(rest, "/dest-address/")
}

// part returns the rest of the key of a part of an interface, after the prefix.
func part(key string) (string, bool) {
	if strings.HasPrefix(key, HostNames) || strings.HasPrefix(key, States) {
		return "", false
	}
	return strings.CutPrefix(key, Interface)
}

// around splits at the first marker. Neither side may be empty.
func around(s, marker string) (before, after string, ok bool) {
	before, after, ok = strings.Cut(s, marker)
	if !ok || before == "" || after == "" {
		return "", "", false
	}
	return before, after, true
}

// has reports whether element is one of the path elements of s.
func has(s, element string) bool {
	for one := range strings.SplitSeq(s, "/") {
		if one == element {
			return true
		}
	}
	return false
}

// or replaces an empty component, which would make a key that cannot be parsed.
func or(component string) string {
	if component == "" {
		return Invalid
	}
	return component
}
