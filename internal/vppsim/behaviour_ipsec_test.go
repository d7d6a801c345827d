package vppsim_test

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"
	"go.fd.io/govpp/binapi/tunnel_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// bytesOf returns a key of a length, in the form of VPP's messages.
func bytesOf(length int) ipsec_types.Key {
	return ipsec_types.Key{Length: uint8(length), Data: append([]byte(strings.Repeat("k", length)), make([]byte, 128-length)...)}
}

// entry returns an association of ESP without tunnel.
func entry(number uint32) ipsec_types.IpsecSadEntryV3 {
	return ipsec_types.IpsecSadEntryV3{
		SadID: number, Spi: 1000 + number, Protocol: ipsec_types.IPSEC_API_PROTO_ESP,
		CryptoAlgorithm: ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CBC_128, CryptoKey: bytesOf(16),
		IntegrityAlgorithm: ipsec_types.IPSEC_API_INTEG_ALG_SHA1_96, IntegrityKey: bytesOf(20),
	}
}

// inTunnel returns an association of ESP with a tunnel.
func inTunnel(number uint32, from, to string) ipsec_types.IpsecSadEntryV3 {
	e := entry(number)
	e.Flags = ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL
	e.Tunnel = tunnel_types.Tunnel{Src: addr(from), Dst: addr(to), HopLimit: 64}
	return e
}

// associate adds an association, for the time of the row.
func (v *vpp) associate(e ipsec_types.IpsecSadEntryV3, want api.VPPApiError) {
	v.Helper()
	v.call(fmt.Sprintf("ipsec_sad_entry_add %d", e.SadID), want, &ipsec.IpsecSadEntryAdd{Entry: e}, &ipsec.IpsecSadEntryAddReply{})
	if want == 0 {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &ipsec.IpsecSadEntryDel{ID: e.SadID}, &ipsec.IpsecSadEntryDelReply{}) // the row may have deleted it
		})
	}
}

func (v *vpp) dissociate(number uint32, want api.VPPApiError) {
	v.Helper()
	v.call(fmt.Sprintf("ipsec_sad_entry_del %d", number), want, &ipsec.IpsecSadEntryDel{ID: number}, &ipsec.IpsecSadEntryDelReply{})
}

// association returns what VPP has of an association; nil: none.
func (v *vpp) association(number uint32) *ipsec_types.IpsecSadEntryV3 {
	v.Helper()
	for _, d := range dump[ipsec.IpsecSaV3Details](v, &ipsec.IpsecSaV3Dump{SaID: number}) {
		if d.Entry.SadID == number {
			return &d.Entry
		}
	}
	return nil
}

// database adds a policy database, for the time of the row.
func (v *vpp) database(number uint32) {
	v.Helper()
	v.setDatabase(number, true, 0)
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &ipsec.IpsecSpdAddDel{SpdID: number}, &ipsec.IpsecSpdAddDelReply{}) // the row may have deleted it
	})
}

func (v *vpp) setDatabase(number uint32, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("ipsec_spd_add_del", want, &ipsec.IpsecSpdAddDel{IsAdd: add, SpdID: number}, &ipsec.IpsecSpdAddDelReply{})
}

func (v *vpp) bindDatabase(i index, number uint32, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("ipsec_interface_add_del_spd", want, &ipsec.IpsecInterfaceAddDelSpd{IsAdd: add, SwIfIndex: i, SpdID: number}, &ipsec.IpsecInterfaceAddDelSpdReply{})
}

// bindings returns the lines of the command line, and the interfaces of the dump, in VPP's order.
func (v *vpp) bindings() (lines []string, at []index) {
	v.Helper()
	var r vlib.CliInbandReply
	v.call("show ipsec spd bindings", 0, &vlib.CliInband{Cmd: "show ipsec spd bindings"}, &r)
	for line := range strings.Lines(r.Reply) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for _, d := range dump[ipsec.IpsecSpdInterfaceDetails](v, &ipsec.IpsecSpdInterfaceDump{}) {
		at = append(at, d.SwIfIndex)
	}
	return lines, at
}

// policyEntry returns a policy between two ranges of addresses.
func policyEntry(database uint32, remote, local [2]string) ipsec_types.IpsecSpdEntryV2 {
	return ipsec_types.IpsecSpdEntryV2{
		SpdID: database, IsOutbound: true, Protocol: 255, LocalPortStop: 65535, RemotePortStop: 65535,
		RemoteAddressStart: addr(remote[0]), RemoteAddressStop: addr(remote[1]), LocalAddressStart: addr(local[0]), LocalAddressStop: addr(local[1]),
	}
}

func (v *vpp) setPolicy(e ipsec_types.IpsecSpdEntryV2, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("ipsec_spd_entry_add_del_v2", want, &ipsec.IpsecSpdEntryAddDelV2{IsAdd: add, Entry: e}, &ipsec.IpsecSpdEntryAddDelV2Reply{})
}

func (v *vpp) policies(database uint32) (out []ipsec_types.IpsecSpdEntry) {
	v.Helper()
	for _, d := range dump[ipsec.IpsecSpdDetails](v, &ipsec.IpsecSpdDump{SpdID: database, SaID: uint32(none)}) {
		out = append(out, d.Entry)
	}
	return out
}

// ipsecTunnel makes an interface of kind "ipsec", for the time of the row.
func (v *vpp) ipsecTunnel(mode tunnel_types.TunnelMode) index {
	v.Helper()
	var r ipsec.IpsecItfCreateReply
	v.call("ipsec_itf_create", 0, &ipsec.IpsecItfCreate{Itf: ipsec.IpsecItf{UserInstance: ^uint32(0), Mode: mode}}, &r)
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &ipsec.IpsecItfDelete{SwIfIndex: r.SwIfIndex}, &ipsec.IpsecItfDeleteReply{}) // the row may have deleted it
	})
	return r.SwIfIndex
}

// ipipTunnel makes an IP-in-IP tunnel, for the time of the row.
func (v *vpp) ipipTunnel(from, to string, mode tunnel_types.TunnelMode) index {
	v.Helper()
	var r ipip.IpipAddTunnelReply
	v.call("ipip_add_tunnel", 0, &ipip.IpipAddTunnel{Tunnel: ipip.IpipTunnel{Instance: ^uint32(0), Src: addr(from), Dst: addr(to), Mode: mode}}, &r)
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &ipip.IpipDelTunnel{SwIfIndex: r.SwIfIndex}, &ipip.IpipDelTunnelReply{}) // the row may have deleted it
	})
	return r.SwIfIndex
}

func (v *vpp) protect(i index, next string, out uint32, want api.VPPApiError, in ...uint32) {
	v.Helper()
	v.call("ipsec_tunnel_protect_update", want, &ipsec.IpsecTunnelProtectUpdate{Tunnel: ipsec.IpsecTunnelProtect{SwIfIndex: i, Nh: addr(next), SaOut: out, SaIn: in}}, &ipsec.IpsecTunnelProtectUpdateReply{})
}

func (v *vpp) unprotect(i index, next string, want api.VPPApiError) {
	v.Helper()
	v.call("ipsec_tunnel_protect_del", want, &ipsec.IpsecTunnelProtectDel{SwIfIndex: i, Nh: addr(next)}, &ipsec.IpsecTunnelProtectDelReply{})
}

// protections checks the protections of an interface (none: of all), as text.
func (v *vpp) protections(i index, want ...string) {
	v.Helper()
	var got []string
	for _, d := range dump[ipsec.IpsecTunnelProtectDetails](v, &ipsec.IpsecTunnelProtectDump{SwIfIndex: i}) {
		got = append(got, fmt.Sprint(vppwire.Addr(d.Tun.Nh), " out ", d.Tun.SaOut, " in ", d.Tun.SaIn))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		v.Errorf("protections are %q; expected %q", got, want)
	}
}

func ipsecRows() []row {
	return []row{
		{"associations are shown as they are", associationsShown},
		{"associations that are refused", associationsRefused},
		{"pairs of algorithms", pairsOfAlgorithms},
		{"policy databases and their interfaces", databases},
		{"a database of a deleted interface", databaseOfDeleted},
		{"policies", policies},
		{"policies of IPv6", policiesOfIPv6},
		{"an association is held by policies", heldByPolicies},
		{"protections", protections},
		{"protections that are refused", protectionsRefused},
		{"a protection ends with its tunnel", protectionEnds},
	}
}

func associationsShown(v *vpp) {
	shown := func(e ipsec_types.IpsecSadEntryV3) ipsec_types.IpsecSadEntryV3 {
		v.Helper()
		v.associate(e, 0)
		if got := v.association(e.SadID); got != nil {
			return *got
		}
		v.Errorf("association %d is not shown", e.SadID)
		return e
	}
	plain := entry(1)
	plain.UDPSrcPort, plain.UDPDstPort, plain.Salt = 5, 6, 0x01020304
	plain.Flags = ipsec_types.IPSEC_API_SAD_FLAG_USE_ESN | ipsec_types.IPSEC_API_SAD_FLAG_USE_ANTI_REPLAY
	got := shown(plain)
	if got.Spi != 1001 || got.Flags != plain.Flags || got.UDPSrcPort != 0 || got.UDPDstPort != 0 || got.Salt != bits.ReverseBytes32(plain.Salt) {
		v.Errorf("it is %+v", got)
	}
	if !slices.Equal(got.CryptoKey.Data[:16], plain.CryptoKey.Data[:16]) || got.CryptoKey.Length != 16 || got.IntegrityKey.Length != 20 {
		v.Errorf("keys are %+v and %+v", got.CryptoKey, got.IntegrityKey)
	}
	for n := range ipsec_types.IPSEC_API_CRYPTO_ALG_3DES_CBC + 1 { // all algorithms of the model
		length := map[ipsec_types.IpsecCryptoAlg]int{0: 0, 1: 16, 2: 24, 3: 32, 4: 16, 5: 24, 6: 32, 7: 16, 8: 24, 9: 32, 10: 7, 11: 24}[n]
		e := entry(20 + uint32(n))
		e.CryptoAlgorithm, e.CryptoKey = n, bytesOf(length)
		if n >= 7 && n <= 9 || n == 10 && v.since("26.06") {
			e.IntegrityAlgorithm, e.IntegrityKey = 0, bytesOf(0)
		}
		if got := shown(e); got.CryptoAlgorithm != n || int(got.CryptoKey.Length) != length {
			v.Errorf("algorithm %d: it is %+v", n, got)
		}
	}
	for n := range ipsec_types.IPSEC_API_INTEG_ALG_SHA_512_256 + 1 {
		e := entry(40 + uint32(n))
		e.IntegrityAlgorithm, e.IntegrityKey = n, bytesOf(30)
		want := 30
		if n == 0 {
			want = 0
		}
		if got := shown(e); got.IntegrityAlgorithm != n || int(got.IntegrityKey.Length) != want {
			v.Errorf("algorithm %d: it is %+v", n, got)
		}
	}
	tunnel := inTunnel(2, "10.0.0.1", "10.0.0.2")
	tunnel.Flags |= ipsec_types.IPSEC_API_SAD_FLAG_UDP_ENCAP
	tunnel.UDPSrcPort, tunnel.UDPDstPort = 65535, 4501
	if got := shown(tunnel); got.Flags != tunnel.Flags || got.UDPSrcPort != 4500 || got.UDPDstPort != 4501 || got.Tunnel.Src != addr("10.0.0.1") || got.Tunnel.Dst != addr("10.0.0.2") {
		v.Errorf("it is %+v", got)
	}
	v6 := inTunnel(3, "fd00::1", "fd00::2")
	if got := shown(v6); got.Flags != v6.Flags|ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL_V6 || got.Tunnel.Src != addr("fd00::1") {
		v.Errorf("it is %+v", got)
	}
	if n := len(dump[ipsec.IpsecSaV3Details](v, &ipsec.IpsecSaV3Dump{SaID: 3})); n < 3 {
		v.Errorf("a dump of one association lists %d; VPP lists all", n)
	}
}

func associationsRefused(v *vpp) {
	v.associate(entry(1), 0)
	v.associate(entry(1), api.ENTRY_ALREADY_EXISTS)
	short := entry(2)
	short.CryptoKey = bytesOf(15)
	v.associate(short, api.KEY_LENGTH)
	none := entry(2)
	none.IntegrityKey = bytesOf(0)
	if v.since("26.06") {
		v.associate(none, 0)
		v.dissociate(2, 0)
	} else {
		v.associate(none, api.KEY_LENGTH)
	}
	header := entry(2)
	header.Protocol, header.IntegrityAlgorithm = ipsec_types.IPSEC_API_PROTO_AH, 0
	v.associate(header, api.UNIMPLEMENTED)
	v.associate(inTunnel(2, "10.0.0.1", "10.0.0.1"), api.SAME_SRC_DST)
	v.associate(inTunnel(2, "10.0.0.1", "fd00::1"), api.INVALID_PROTOCOL)
	other := entry(2)
	other.Protocol = 0
	v.associate(other, api.INVALID_PROTOCOL)
	v.dissociate(2, api.NO_SUCH_ENTRY)
	v.dissociate(1, 0)
	v.dissociate(1, api.NO_SUCH_ENTRY)
}

// pairsOfAlgorithms has pairs that 26.06 refuses, whatever the lengths of their keys are.
func pairsOfAlgorithms(v *vpp) {
	const md5, sha1 = ipsec_types.IPSEC_API_INTEG_ALG_MD5_96, ipsec_types.IPSEC_API_INTEG_ALG_SHA1_96
	add := func(crypto ipsec_types.IpsecCryptoAlg, length int, integ ipsec_types.IpsecIntegAlg, before api.VPPApiError, since api.VPPApiError) {
		v.Helper()
		e := entry(7)
		e.CryptoAlgorithm, e.CryptoKey, e.IntegrityAlgorithm = crypto, bytesOf(length), integ
		want := before
		if v.since("26.06") {
			want = since
		}
		v.associate(e, want)
		if want == 0 {
			v.dissociate(7, 0)
		}
	}
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_DES_CBC, 7, sha1, 0, api.UNIMPLEMENTED)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_DES_CBC, 8, sha1, api.KEY_LENGTH, api.UNIMPLEMENTED)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_DES_CBC, 8, 0, api.KEY_LENGTH, api.KEY_LENGTH)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_128, 16, md5, 0, api.UNIMPLEMENTED)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_128, 16, sha1, 0, 0)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CBC_128, 16, md5, 0, 0)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_128, 16, sha1, 0, api.UNIMPLEMENTED)
	add(ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_128, 16, 0, 0, 0)
	if v.since("26.06") {
		header := entry(7) // shown without the encryption that it does not have
		header.Protocol = ipsec_types.IPSEC_API_PROTO_AH
		v.associate(header, 0)
		if got := v.association(7); got == nil || got.CryptoAlgorithm != 0 {
			v.Errorf("it is %+v", got)
		}
	}
}

func databases(v *vpp) {
	i, j := v.loop(), v.loop()
	v.database(7)
	v.database(3)
	v.setDatabase(7, true, api.ENTRY_ALREADY_EXISTS)
	v.setDatabase(9, false, api.NO_SUCH_ENTRY)
	var all []uint32
	for _, d := range dump[ipsec.IpsecSpdsDetails](v, &ipsec.IpsecSpdsDump{}) {
		all = append(all, d.SpdID)
	}
	if !slices.Equal(all, []uint32{7, 3}) {
		v.Errorf("databases are %v", all)
	}
	v.bindDatabase(i, 9, true, api.SYSCALL_ERROR_1)
	v.bindDatabase(unknown, 7, true, api.INVALID_SW_IF_INDEX)
	v.bindDatabase(i, 7, true, 0)
	v.bindDatabase(i, 7, true, api.SYSCALL_ERROR_2)
	v.bindDatabase(i, 3, true, api.SYSCALL_ERROR_2)
	v.bindDatabase(j, 3, true, 0)
	lines, at := v.bindings() // in the same order
	want := map[index]string{i: fmt.Sprint("7 -> ", v.details(i).InterfaceName), j: fmt.Sprint("3 -> ", v.details(j).InterfaceName)}
	if len(lines) != 3 || len(at) != 2 || lines[0] != "SPD Bindings:" || lines[1] != want[at[0]] || lines[2] != want[at[1]] {
		v.Errorf("bound are %q, %v", lines, at)
	}
	inputs := func(when string, want int) {
		v.Helper()
		link := v.details(i).InterfaceName
		n := strings.Count(v.command("show interface features "+link), "ipsec4-input-feature")
		if v.sim != nil {
			_, of, _ := strings.Cut("\n"+v.sim.Show("show ipsec spd inputs"), "\n"+link+" ")
			of, _, _ = strings.Cut(of, "\n")
			n = len(strings.Fields(of))
		}
		if n != want {
			v.Errorf("%s: incoming packets go through %d databases; expected %d", when, n, want)
		}
	}
	inputs("bound", 1)
	v.bindDatabase(i, 3, false, 0) // removes the other one, but not for incoming packets
	inputs("unbound by another number", 1)
	v.bindDatabase(i, 3, true, 0)
	inputs("bound to another one", 2)
	v.bindDatabase(i, 3, false, 0)
	v.bindDatabase(i, 7, false, 0) // there is none
	inputs("unbound", 0)
	v.setDatabase(3, false, 0) // unbinds
	v.database(3)
	if _, at := v.bindings(); len(at) > 0 {
		v.Errorf("bound are %v", at)
	}
}

func databaseOfDeleted(v *vpp) {
	i := v.loop()
	v.database(7)
	v.bindDatabase(i, 7, true, 0)
	if err := v.delete(i); err != nil {
		v.Fatal(err)
	}
	if lines, at := v.bindings(); !slices.Equal(at, []index{i}) || len(lines) != 2 || !strings.HasPrefix(lines[1], "7 -> DELETED") {
		v.Errorf("bound are %q, %v", lines, at)
	}
	v.bindDatabase(i, 7, false, api.INVALID_SW_IF_INDEX)
	again := v.loop()
	if again != i {
		v.Fatalf("a new interface has index %d, not %d", again, i)
	}
	v.bindDatabase(again, 7, true, api.SYSCALL_ERROR_2)
	v.bindDatabase(again, 7, false, 0)
	v.bindDatabase(again, 7, true, 0)
	if err := v.delete(again); err != nil {
		v.Fatal(err)
	}
	v.setDatabase(7, false, 0) // of a deleted interface
	if _, at := v.bindings(); len(at) > 0 {
		v.Errorf("bound are %v", at)
	}
}

func policies(v *vpp) {
	v.database(7)
	remote, local := [2]string{"10.1.0.0", "10.1.0.255"}, [2]string{"10.2.0.0", "10.2.0.255"}
	a, b := policyEntry(7, remote, local), policyEntry(7, remote, local)
	b.Priority = 5
	resolve, nowhere, lacking := a, a, a
	resolve.Policy = ipsec_types.IPSEC_API_SPD_ACTION_RESOLVE
	nowhere.SpdID = 8
	lacking.Policy, lacking.SaID = ipsec_types.IPSEC_API_SPD_ACTION_PROTECT, 99
	v.setPolicy(resolve, true, api.UNIMPLEMENTED)
	v.setPolicy(nowhere, true, api.SYSCALL_ERROR_1)
	v.setPolicy(lacking, true, api.SYSCALL_ERROR_1)
	v.setPolicy(a, true, 0)
	v.setPolicy(b, true, 0)
	in := a
	in.IsOutbound = false
	v.setPolicy(in, true, 0)
	if got := v.policies(7); len(got) != 3 || got[0].Priority != 5 || got[1] != ipsec_types.IpsecSpdEntry(a) || got[2].IsOutbound {
		v.Errorf("policies are %+v", got)
	}
	v.setPolicy(a, true, 0) // twice
	if got := v.policies(7); len(got) != 4 {
		v.Errorf("policies are %+v", got)
	}
	v.setPolicy(a, false, 0)
	other := a
	other.SaID = 4
	v.setPolicy(other, false, 0) // deletes none
	if got := v.policies(7); len(got) != 3 {
		v.Errorf("policies are %+v", got)
	}
	older := ipsec_types.IpsecSpdEntry(a)
	older.Protocol, older.Priority = 0, 9
	v.call("ipsec_spd_entry_add_del", 0, &ipsec.IpsecSpdEntryAddDel{IsAdd: true, Entry: older}, &ipsec.IpsecSpdEntryAddDelReply{})
	if got := v.policies(7); len(got) != 4 || got[0].Protocol != 255 || got[0].Priority != 9 {
		v.Errorf("policies are %+v", got)
	}
	v.setDatabase(7, false, 0)
	v.database(7)
	if got := v.policies(7); len(got) != 0 {
		v.Errorf("policies are %+v", got)
	}
}

func policiesOfIPv6(v *vpp) {
	v.database(7)
	everything := [2]string{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
	a := policyEntry(7, everything, everything)
	v.setPolicy(a, true, 0)
	got := v.policies(7)
	if len(got) != 1 || got[0].RemoteAddressStart != addr("0.0.0.0") || got[0].RemoteAddressStop.Af != ip_types.ADDRESS_IP6 {
		v.Errorf("policies are %+v", got)
	}
	v.setPolicy(a, false, 0)
	b := policyEntry(7, [2]string{"fd00::1", "fd00::5"}, everything)
	v.setPolicy(b, true, 0)
	b.RemoteAddressStop = addr("fd00::9")
	v.setPolicy(b, false, 0) // deletes the other one
	if got := v.policies(7); len(got) != 0 {
		v.Errorf("policies are %+v", got)
	}
}

func heldByPolicies(v *vpp) {
	v.database(7)
	v.associate(entry(1), 0)
	a := policyEntry(7, [2]string{"10.1.0.0", "10.1.0.255"}, [2]string{"10.2.0.0", "10.2.0.255"})
	a.Policy, a.SaID = ipsec_types.IPSEC_API_SPD_ACTION_PROTECT, 1
	v.setPolicy(a, true, 0)
	v.dissociate(1, 0) // the policy holds it
	if v.association(1) == nil {
		v.Error("the association is gone")
	}
	v.associate(entry(1), api.ENTRY_ALREADY_EXISTS)
	v.setPolicy(a, false, 0)
	if v.association(1) != nil {
		v.Error("the association stays")
	}
	v.associate(entry(1), 0)
	v.setPolicy(a, true, 0)
	v.setDatabase(7, false, 0) // leaves the hold of the policy
	v.dissociate(1, 0)
	v.dissociate(1, 0)
	v.dissociate(1, api.NO_SUCH_ENTRY)
}

func protections(v *vpp) {
	const p2p, p2mp = tunnel_types.TUNNEL_API_MODE_P2P, tunnel_types.TUNNEL_API_MODE_MP
	for n := range uint32(5) {
		v.associate(entry(1+n), 0)
	}
	v.associate(inTunnel(6, "10.0.0.1", "10.0.0.2"), 0)
	i := v.ipipTunnel("10.0.0.1", "10.0.0.2", p2p)
	v.unprotect(i, "0.0.0.0", api.NO_SUCH_ENTRY)
	v.protect(i, "0.0.0.0", 1, 0, 2, 3)
	v.protections(i, "0.0.0.0 out 1 in [2 3]")
	v.protect(i, "0.0.0.0", 4, 0, 2)
	v.protections(i, "0.0.0.0 out 4 in [2]")
	v.protect(i, "10.0.0.9", 1, 0, 3) // a point-to-point tunnel has one
	v.protections(i, "0.0.0.0 out 1 in [3]")
	v.unprotect(i, "10.0.0.8", 0)
	v.protections(i)

	many := v.ipsecTunnel(p2mp)
	v.protect(many, "10.0.0.9", 6, 0, 3)
	v.protect(many, "fd00::9", 6, 0, 4)
	v.protections(many, "10.0.0.9 out 6 in [3]", "fd00::9 out 6 in [4]")
	v.unprotect(many, "10.0.0.8", api.NO_SUCH_ENTRY)
	v.unprotect(many, "10.0.0.9", 0)
	v.protections(many, "fd00::9 out 6 in [4]")
	v.dissociate(4, 0)
	if v.association(4) == nil {
		v.Error("the association is gone that a protection holds")
	}
	v.unprotect(many, "fd00::9", 0)
	if v.association(4) != nil {
		v.Error("the association stays that nobody holds")
	}
}

func protectionsRefused(v *vpp) {
	const p2p = tunnel_types.TUNNEL_API_MODE_P2P
	for n := range uint32(5) {
		v.associate(entry(1+n), 0)
	}
	i := v.ipipTunnel("10.0.0.1", "10.0.0.2", p2p)
	v.protect(i, "0.0.0.0", 1, api.LIMIT_EXCEEDED, 1, 2, 3, 4, 5)
	v.protect(i, "0.0.0.0", 1, api.INVALID_VALUE, 9)
	v.protect(unknown, "0.0.0.0", 1, api.INVALID_SW_IF_INDEX, 2)
	v.protect(v.loop(), "0.0.0.0", 1, api.INVALID_SW_IF_INDEX, 2) // keeps a hold of both
	v.protect(i, "0.0.0.0", 9, api.INVALID_VALUE, 2)              // and another of 2
	v.dissociate(1, 0)
	v.dissociate(1, 0)
	v.dissociate(1, api.NO_SUCH_ENTRY)
	for range 3 {
		v.dissociate(2, 0)
	}
	v.dissociate(2, api.NO_SUCH_ENTRY)

	if v.fresh { // a lost protection is never removed
		bare := v.ipsecTunnel(p2p)
		v.protect(bare, "0.0.0.0", 3, api.INVALID_DST_ADDRESS, 4)
		v.protections(bare)
		v.protections(none, "0.0.0.0 out 3 in [4]")
		v.unprotect(bare, "0.0.0.0", api.NO_SUCH_ENTRY)
	}
}

func protectionEnds(v *vpp) {
	v.associate(entry(1), 0)
	i := v.ipipTunnel("10.0.0.1", "10.0.0.2", tunnel_types.TUNNEL_API_MODE_P2P)
	v.protect(i, "0.0.0.0", 1, 0, 1)
	v.call("delete", 0, &ipip.IpipDelTunnel{SwIfIndex: i}, &ipip.IpipDelTunnelReply{})
	v.protections(none)
	v.dissociate(1, 0)
	v.dissociate(1, api.NO_SUCH_ENTRY)
}
