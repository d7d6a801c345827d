package ipsec

import (
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/netip"

	"go.fd.io/govpp/binapi/ipsec_types"
	"go.fd.io/govpp/binapi/tunnel_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
)

const (
	// hidden stands for a secret in errors.
	hidden = "(secret)"
	// keyRoom is the maximum length of a key in bytes (VPP ipsec_types.api, key).
	keyRoom = 128
	// defaultPort is the UDP port of IPsec (RFC 3948).
	defaultPort = 4500
)

// keyBytes returns the length of an algorithm's key in bytes. That of DES is VPP's: it has no
// parity bits (VPP vnet/crypto/crypto.h).
func keyBytes(a ipsec.CryptoAlg) int {
	switch a {
	case ipsec.CryptoAlg_AES_CBC_128, ipsec.CryptoAlg_AES_CTR_128, ipsec.CryptoAlg_AES_GCM_128:
		return 16
	case ipsec.CryptoAlg_AES_CBC_192, ipsec.CryptoAlg_AES_CTR_192, ipsec.CryptoAlg_AES_GCM_192, ipsec.CryptoAlg_DES3_CBC:
		return 24
	case ipsec.CryptoAlg_AES_CBC_256, ipsec.CryptoAlg_AES_CTR_256, ipsec.CryptoAlg_AES_GCM_256:
		return 32
	case ipsec.CryptoAlg_DES_CBC:
		return 7
	case ipsec.CryptoAlg_NONE_CRYPTO:
	}
	return 0
}

// isGCM reports whether an algorithm authenticates by itself (RFC 4106).
func isGCM(a ipsec.CryptoAlg) bool {
	return a >= ipsec.CryptoAlg_AES_GCM_128 && a <= ipsec.CryptoAlg_AES_GCM_256
}

// hasSalt reports whether an algorithm uses the salt (RFC 3686, RFC 4106).
func hasSalt(a ipsec.CryptoAlg) bool {
	return a >= ipsec.CryptoAlg_AES_CTR_128 && a <= ipsec.CryptoAlg_AES_GCM_256
}

// normalizeAssociation removes prefix lengths from the ends of the tunnel, and the fields that VPP ignores.
func normalizeAssociation(_ string, v *ipsec.SecurityAssociation) (*ipsec.SecurityAssociation, []string) {
	v, warnings := withoutIgnored(v)
	v, spelt := withoutLengths(v)
	return v, append(warnings, spelt...)
}

// withoutIgnored removes the fields that VPP ignores, by the algorithms of the value. Each has a warning.
func withoutIgnored(v *ipsec.SecurityAssociation) (*ipsec.SecurityAssociation, []string) {
	var warnings []string
	out := v
	ignored := func(is bool, field string, value any, clear func(), why string, args ...any) {
		if !is {
			return
		}
		if out == v { // messages are shared
			out = proto.CloneOf(v)
		}
		clear()
		warnings = append(warnings, models.Ignored(field, value, why, args...))
	}
	esp, gcm := v.GetProtocol() == ipsec.SecurityAssociation_ESP, isGCM(v.GetCryptoAlg())
	known := ipsec.IntegAlg_name[int32(v.GetIntegAlg())] != "" // others are invalid
	encrypts := esp && v.GetCryptoAlg() != ipsec.CryptoAlg_NONE_CRYPTO
	ignored(esp && gcm && known && v.GetIntegAlg() != ipsec.IntegAlg_NONE_INTEG, "integ_alg", v.GetIntegAlg().String(),
		func() { out.IntegAlg, out.IntegKey = ipsec.IntegAlg_NONE_INTEG, "" }, "%s also authenticates", v.GetCryptoAlg())
	ignored(v.GetCryptoKey() != "" && esp && !encrypts, "crypto_key", hidden, func() { out.CryptoKey = "" }, "crypto_alg is NONE_CRYPTO")
	ignored(v.GetCryptoSalt() != 0 && esp && !hasSalt(v.GetCryptoAlg()), "crypto_salt", hidden, func() { out.CryptoSalt = 0 }, "only AES_CTR and AES_GCM have one")
	ignored(v.GetIntegKey() != "" && v.GetIntegAlg() == ipsec.IntegAlg_NONE_INTEG, "integ_key", hidden, func() { out.IntegKey = "" }, "integ_alg is NONE_INTEG")
	return out, warnings
}

// withoutLengths removes prefix lengths from the ends of the tunnel.
func withoutLengths(v *ipsec.SecurityAssociation) (*ipsec.SecurityAssociation, []string) {
	if !spelling.HasLength(v.GetTunnelSrcAddr()) && !spelling.HasLength(v.GetTunnelDstAddr()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, append(spelling.Host("tunnel_src_addr", &v.TunnelSrcAddr), spelling.Host("tunnel_dst_addr", &v.TunnelDstAddr)...)
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// validateAssociation checks a value as VPP would, but names the field. Errors never show keys.
func validateAssociation(_ string, v *ipsec.SecurityAssociation) error {
	var f faults
	if ipsec.SecurityAssociation_IPSecProtocol_name[int32(v.GetProtocol())] == "" {
		f.Add("protocol", int32(v.GetProtocol()), "AH or ESP")
	}
	f.encryption(v)
	f.authentication(v)
	f.tunnel(v)
	return f.Err()
}

// encryption checks the algorithm that encrypts. AH encrypts nothing, so its key does not matter.
func (f *faults) encryption(v *ipsec.SecurityAssociation) {
	algorithm := v.GetCryptoAlg()
	if ipsec.CryptoAlg_name[int32(algorithm)] == "" {
		f.Add("crypto_alg", int32(algorithm), "a number of CryptoAlg, 0 to %d", len(ipsec.CryptoAlg_name)-1)
		return
	}
	key, err := hex.DecodeString(v.GetCryptoKey())
	if want := keyBytes(algorithm); v.GetProtocol() == ipsec.SecurityAssociation_ESP && want > 0 && (err != nil || len(key) != want) {
		f.Add("crypto_key", hidden, "the key of %s: %d bytes, that is %d hexadecimal digits", algorithm, want, 2*want)
	}
}

// authentication checks the algorithm that authenticates.
func (f *faults) authentication(v *ipsec.SecurityAssociation) {
	algorithm := v.GetIntegAlg()
	switch {
	case ipsec.IntegAlg_name[int32(algorithm)] == "":
		f.Add("integ_alg", int32(algorithm), "a number of IntegAlg, 0 to %d", len(ipsec.IntegAlg_name)-1)
	case algorithm == ipsec.IntegAlg_NONE_INTEG && v.GetProtocol() == ipsec.SecurityAssociation_AH:
		f.Add("integ_alg", algorithm.String(), "an algorithm: AH does nothing but authenticate")
	}
	if algorithm == ipsec.IntegAlg_NONE_INTEG {
		return
	}
	if key, err := hex.DecodeString(v.GetIntegKey()); err != nil || len(key) == 0 || len(key) > keyRoom {
		f.Add("integ_key", hidden, "a key of 1 to %d bytes in hexadecimal digits", keyRoom)
	}
}

// tunnel checks the ends of the tunnel: both or none. VPP refuses two ends of different IP
// versions.
func (f *faults) tunnel(v *ipsec.SecurityAssociation) {
	if v.GetTunnelSrcAddr() == "" && v.GetTunnelDstAddr() == "" {
		return
	}
	from, okFrom := f.address("tunnel_src_addr", v.GetTunnelSrcAddr())
	to, okTo := f.address("tunnel_dst_addr", v.GetTunnelDstAddr())
	switch {
	case !okFrom || !okTo:
	case from.Is6() != to.Is6():
		f.Add("tunnel_dst_addr", v.GetTunnelDstAddr(), "an address of the IP version of tunnel_src_addr, %s", from)
	case from == to:
		f.Add("tunnel_dst_addr", v.GetTunnelDstAddr(), "another address than tunnel_src_addr")
	}
}

// address checks an address.
func (f *faults) address(field, text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
		return a, false
	}
	return a, true
}

// An association is a security association with defaults filled in, and without fields that have
// no effect. Two equal ones are the same to VPP.
type association struct {
	spi              uint32
	protocol         ipsec.SecurityAssociation_IPSecProtocol
	crypto           ipsec.CryptoAlg
	cryptoKey        string // its bytes
	salt             uint32
	integ            ipsec.IntegAlg
	integKey         string // its bytes
	esn, antiReplay  bool
	from, to         netip.Addr // both invalid: no tunnel
	encapsulated     bool       // in UDP
	srcPort, dstPort uint16
}

// associationOf returns the association of a valid value. An AH association has no encryption,
// and a port counts only with UDP encapsulation.
func associationOf(v *ipsec.SecurityAssociation) association {
	a := association{
		spi: v.GetSpi(), protocol: v.GetProtocol(), integ: v.GetIntegAlg(),
		esn: v.GetUseEsn(), antiReplay: v.GetUseAntiReplay(), encapsulated: v.GetEnableUdpEncap(),
	}
	if a.protocol == ipsec.SecurityAssociation_ESP {
		a.crypto = v.GetCryptoAlg()
	}
	if a.crypto != ipsec.CryptoAlg_NONE_CRYPTO {
		a.cryptoKey = bytesIn(v.GetCryptoKey())
	}
	if hasSalt(a.crypto) {
		a.salt = v.GetCryptoSalt()
	}
	if a.integ != ipsec.IntegAlg_NONE_INTEG {
		a.integKey = bytesIn(v.GetIntegKey())
	}
	if from, err := netip.ParseAddr(v.GetTunnelSrcAddr()); err == nil {
		a.from = from
	}
	if to, err := netip.ParseAddr(v.GetTunnelDstAddr()); err == nil {
		a.to = to
	}
	if a.encapsulated {
		a.srcPort, a.dstPort = portOf(v.GetTunnelSrcPort()), portOf(v.GetTunnelDstPort())
	}
	return a
}

// bytesIn decodes hexadecimal digits; invalid ones are none.
func bytesIn(digits string) string {
	key, err := hex.DecodeString(digits)
	if err != nil {
		return ""
	}
	return string(key)
}

// portOf returns a port; 0 is the default.
func portOf(port uint32) uint16 {
	if port == 0 {
		return defaultPort
	}
	return uint16(port)
}

// isTunnel reports whether packets get an outer header.
func (a association) isTunnel() bool { return a.from.IsValid() }

// entry returns an association in the form of VPP's messages.
func (a association) entry(number uint32) ipsec_types.IpsecSadEntryV3 {
	e := ipsec_types.IpsecSadEntryV3{
		SadID: number, Spi: a.spi, Protocol: ipsec_types.IPSEC_API_PROTO_ESP,
		// VPP and the model number algorithms in the same way.
		CryptoAlgorithm: ipsec_types.IpsecCryptoAlg(a.crypto), CryptoKey: wireKey(a.cryptoKey), Salt: a.salt,
		IntegrityAlgorithm: ipsec_types.IpsecIntegAlg(a.integ), IntegrityKey: wireKey(a.integKey),
		UDPSrcPort: a.srcPort, UDPDstPort: a.dstPort,
	}
	if a.protocol == ipsec.SecurityAssociation_AH {
		e.Protocol = ipsec_types.IPSEC_API_PROTO_AH
	}
	for flag, is := range a.flags() {
		if *is {
			e.Flags |= flag
		}
	}
	if a.isTunnel() {
		// VPP's own default of the hop limit, which older messages could not set.
		const hopLimit = 255
		e.Flags |= ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL
		e.Tunnel = tunnel_types.Tunnel{Src: vppwire.Address(a.from), Dst: vppwire.Address(a.to), HopLimit: hopLimit}
	}
	return e
}

// flags returns the fields that are flags of VPP.
func (a *association) flags() map[ipsec_types.IpsecSadFlags]*bool {
	return map[ipsec_types.IpsecSadFlags]*bool{
		ipsec_types.IPSEC_API_SAD_FLAG_USE_ESN:         &a.esn,
		ipsec_types.IPSEC_API_SAD_FLAG_USE_ANTI_REPLAY: &a.antiReplay,
		ipsec_types.IPSEC_API_SAD_FLAG_UDP_ENCAP:       &a.encapsulated,
	}
}

// wireKey returns a key in the form of VPP's messages.
func wireKey(key string) ipsec_types.Key {
	data := make([]byte, keyRoom)
	copy(data, key)
	return ipsec_types.Key{Length: uint8(len(key)), Data: data}
}

// keyText is the inverse of wireKey, in hexadecimal digits.
func keyText(k ipsec_types.Key) string {
	return hex.EncodeToString(k.Data[:min(int(k.Length), len(k.Data))])
}

// valueOf returns the value of an association that VPP shows. All releases take the salt in the
// order of the host's bytes, and show it reversed (VPP ipsec_api.c, entry.salt).
func valueOf(e ipsec_types.IpsecSadEntryV3) *ipsec.SecurityAssociation {
	v := &ipsec.SecurityAssociation{
		Index: e.SadID, Spi: e.Spi, Protocol: ipsec.SecurityAssociation_ESP,
		CryptoAlg: ipsec.CryptoAlg(e.CryptoAlgorithm), CryptoKey: keyText(e.CryptoKey), CryptoSalt: bits.ReverseBytes32(e.Salt),
		IntegAlg: ipsec.IntegAlg(e.IntegrityAlgorithm), IntegKey: keyText(e.IntegrityKey),
		UseEsn:        e.Flags&ipsec_types.IPSEC_API_SAD_FLAG_USE_ESN != 0,
		UseAntiReplay: e.Flags&ipsec_types.IPSEC_API_SAD_FLAG_USE_ANTI_REPLAY != 0, EnableUdpEncap: e.Flags&ipsec_types.IPSEC_API_SAD_FLAG_UDP_ENCAP != 0,
	}
	if e.Protocol == ipsec_types.IPSEC_API_PROTO_AH {
		v.Protocol = ipsec.SecurityAssociation_AH
	}
	if e.Flags&ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL != 0 {
		v.TunnelSrcAddr, v.TunnelDstAddr = vppwire.Addr(e.Tunnel.Src).String(), vppwire.Addr(e.Tunnel.Dst).String()
	}
	if v.EnableUdpEncap {
		v.TunnelSrcPort, v.TunnelDstPort = uint32(e.UDPSrcPort), uint32(e.UDPDstPort)
	}
	return v
}

// nameOf returns the name of an association in errors.
func nameOf(number uint32) string { return fmt.Sprint("security association ", number) }
