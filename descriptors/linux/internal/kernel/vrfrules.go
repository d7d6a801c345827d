package kernel

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// A rule ("1000: from all lookup [l3mdev-table]") sends the packets of links in VRFs to the tables of the VRFs. The
// kernel adds it in each family with the first VRF of a namespace, and never again: if somebody removes it, no VRF of
// that namespace works, also one that is made later. Only drivers/net/vrf.c says which priority it has.

const (
	priorityVRF  = 1000  // FIB_RULE_PREF in drivers/net/vrf.c
	priorityMain = 32766 // of the rule for the main table, which has a route for nearly everything
)

// Families of rules for multicast routing (RTNL_FAMILY_* of linux/rtnetlink.h), which a kernel may lack.
const (
	familyMulticast  = 128
	familyMulticast6 = 129
)

// Offsets in fib_rule_hdr of linux/fib_rules.h, and its size.
const (
	ruleDstLen, ruleSrcLen, ruleTOS, ruleAction, ruleFlags = 1, 2, 3, 7, 8

	sizeofRule = 12
)

// HasVRFRules implements Kernel.
func (k *real) HasVRFRules() (bool, error) {
	lacking, err := k.lackingVRFRules()
	return len(lacking) == 0, err
}

// AddVRFRules implements Kernel. They are written as the kernel writes them.
func (k *real) AddVRFRules() error {
	lacking, err := k.lackingVRFRules()
	for _, family := range lacking {
		request, failed := k.request(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
		if failed != nil {
			return failed
		}
		m := make([]byte, sizeofRule)
		m[0], m[ruleAction] = family, unix.FR_ACT_TO_TBL
		m = attribute(m, unix.FRA_L3MDEV, 1)
		m = attribute32(m, unix.FRA_PRIORITY, priorityVRF)
		m = attribute(m, unix.FRA_PROTOCOL, unix.RTPROT_KERNEL)
		request.AddRawData(m)
		_, failed = request.Execute(unix.NETLINK_ROUTE, 0)
		if !errors.Is(failed, unix.EEXIST) {
			err = errors.Join(err, about(failed, "adding the rule of VRFs (ip -%s rule add pref %d l3mdev)", familyName(family), priorityVRF))
		}
	}
	return err
}

// familyName returns the option of ip for a family of rules.
func familyName(family byte) string {
	if family == unix.AF_INET6 || family == familyMulticast6 {
		return "6"
	}
	return "4"
}

// lackingVRFRules returns the families of the kernel that have no rule of VRFs. Each family has some rules.
func (k *real) lackingVRFRules() (lacking []byte, err error) {
	rules, err := dump(func() ([][]byte, error) {
		request, err := k.request(unix.RTM_GETRULE, unix.NLM_F_DUMP)
		if err != nil {
			return nil, err
		}
		request.AddRawData(make([]byte, sizeofRule)) // of all families
		return request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWRULE)
	})
	if err != nil {
		return nil, about(err, "listing rules")
	}
	has := map[byte]bool{unix.AF_INET: false}
	for _, m := range rules {
		if len(m) >= sizeofRule && slices.Contains([]byte{unix.AF_INET, unix.AF_INET6, familyMulticast, familyMulticast6}, m[0]) {
			has[m[0]] = has[m[0]] || ofVRFs(m) && forAll(m)
		}
	}
	for family, complete := range has {
		if !complete {
			lacking = append(lacking, family)
		}
	}
	slices.Sort(lacking)
	return lacking, nil
}

// ofVRFs reports whether a rule, a fib_rule_hdr with attributes, looks up the table of the VRF.
func ofVRFs(m []byte) bool {
	if len(m) < sizeofRule {
		return false
	}
	for kind, value := range attributes(m[sizeofRule:]) {
		if kind == unix.FRA_L3MDEV && len(value) > 0 && value[0] != 0 {
			return true
		}
	}
	return false
}

// forAll reports whether a rule applies to all packets, and before the main table: people may give it another priority.
func forAll(m []byte) bool {
	priority := uint32(0)
	for kind, value := range attributes(m[sizeofRule:]) {
		switch kind {
		case unix.FRA_PRIORITY:
			priority = number(value)
		case unix.FRA_SUPPRESS_PREFIXLEN, unix.FRA_SUPPRESS_IFGROUP:
			if number(value) != math.MaxUint32 {
				return false
			}
		case unix.FRA_TABLE, unix.FRA_L3MDEV, unix.FRA_PROTOCOL, unix.FRA_PAD:
		default: // the rule is for some packets only
			return false
		}
	}
	return m[ruleDstLen] == 0 && m[ruleSrcLen] == 0 && m[ruleTOS] == 0 && m[ruleAction] == unix.FR_ACT_TO_TBL &&
		number(m[ruleFlags:])&unix.FIB_RULE_INVERT == 0 && priority < priorityMain
}
