package ipsec

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// Flags of an association.
const (
	isTunnel = ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL
	isV6     = ipsec_types.IPSEC_API_SAD_FLAG_IS_TUNNEL_V6
	inUDP    = ipsec_types.IPSEC_API_SAD_FLAG_UDP_ENCAP
)

// An association is a security association. VPP frees it when nobody holds it.
type association struct {
	entry ipsec_types.IpsecSadEntryV3
	// holds counts the creator, policies of action PROTECT, and protections. It is at least 1.
	holds int
}

// find returns the association with a number, or nil.
func (p *plugin) find(number uint32) *association {
	for _, a := range p.associations.each {
		if a.entry.SadID == number {
			return a
		}
	}
	return nil
}

// release gives up one hold. At zero, the next association gets its slot.
func (p *plugin) release(a *association) {
	if a.holds--; a.holds == 0 {
		p.associations.remove(a)
	}
}

// cryptoKeys are the lengths of keys in bytes (VPP vnet/crypto/crypto.h). An algorithm that is
// missing here accepts only an empty key. The model has none of those.
var cryptoKeys = map[ipsec_types.IpsecCryptoAlg]uint8{
	ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CBC_128: 16, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CBC_192: 24, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CBC_256: 32,
	ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_128: 16, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_192: 24, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_256: 32,
	ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_128: 16, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_192: 24, ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_256: 32,
	ipsec_types.IPSEC_API_CRYPTO_ALG_DES_CBC: 7, ipsec_types.IPSEC_API_CRYPTO_ALG_3DES_CBC: 24,
}

// addAssociation checks a request in VPP's order. The order matters if a request has two errors:
// tests compare the error number with the real VPP's. The creator gets the first hold.
func (p *plugin) addAssociation(q *ipsec.IpsecSadEntryAdd, r *ipsec.IpsecSadEntryAddReply) core.Errno {
	// VPP also fills in this field when it refuses the request.
	r.StatIndex = core.None
	e := q.Entry
	switch {
	case e.Protocol != ipsec_types.IPSEC_API_PROTO_ESP && e.Protocol != ipsec_types.IPSEC_API_PROTO_AH:
		return api.INVALID_PROTOCOL
	case e.CryptoAlgorithm > ipsec_types.IPSEC_API_CRYPTO_ALG_AES_NULL_GMAC_256, e.IntegrityAlgorithm > ipsec_types.IPSEC_API_INTEG_ALG_SHA_512_256:
		return api.INVALID_ALGORITHM
	}
	if e.Flags&isTunnel != 0 {
		if e.Tunnel.Src.Af != e.Tunnel.Dst.Af {
			return api.INVALID_PROTOCOL
		}
		if errno := tunnel.CheckEnds(p.tables, e.Tunnel.Src, e.Tunnel.Dst, e.Tunnel.TableID); errno != core.OK {
			return errno
		}
	}
	switch {
	case p.find(e.SadID) != nil:
		return api.ENTRY_ALREADY_EXISTS
	case !p.vpp.Before("26.06"):
		if errno := checkPair(&e); errno != core.OK {
			return errno
		}
	case e.CryptoAlgorithm != 0 && cryptoKeys[e.CryptoAlgorithm] != e.CryptoKey.Length, e.IntegrityAlgorithm != 0 && e.IntegrityKey.Length == 0:
		return api.KEY_LENGTH
	case e.Protocol == ipsec_types.IPSEC_API_PROTO_AH && e.IntegrityAlgorithm == 0:
		return api.UNIMPLEMENTED
	}
	r.StatIndex = uint32(p.associations.put(&association{entry: p.stored(e), holds: 1}))
	return core.OK
}

// checkPair checks the algorithms and keys as 26.06 does, which has one operation for each pair of
// algorithms that it knows. It looks at no key of length 0, and AH loses its encryption.
func checkPair(e *ipsec_types.IpsecSadEntryV3) core.Errno {
	if e.Protocol == ipsec_types.IPSEC_API_PROTO_AH {
		if e.IntegrityAlgorithm == 0 {
			return api.UNIMPLEMENTED
		}
		e.CryptoAlgorithm = ipsec_types.IPSEC_API_CRYPTO_ALG_NONE
	}
	crypto, length := e.CryptoAlgorithm, e.CryptoKey.Length
	alone := crypto == ipsec_types.IPSEC_API_CRYPTO_ALG_DES_CBC ||
		crypto >= ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_128 && crypto <= ipsec_types.IPSEC_API_CRYPTO_ALG_AES_GCM_256 ||
		crypto > ipsec_types.IPSEC_API_CRYPTO_ALG_3DES_CBC
	ctr := crypto >= ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_128 && crypto <= ipsec_types.IPSEC_API_CRYPTO_ALG_AES_CTR_256
	switch {
	case alone && e.IntegrityAlgorithm != 0, ctr && e.IntegrityAlgorithm == ipsec_types.IPSEC_API_INTEG_ALG_MD5_96:
		return api.UNIMPLEMENTED
	case crypto != 0 && length != 0 && length != cryptoKeys[crypto]:
		return api.KEY_LENGTH
	}
	return core.OK
}

// stored returns an entry as VPP shows it: the salt has its bytes reversed. Ports without UDP
// encapsulation are zero. The keys are copied, because the request's memory belongs to its
// sender.
func (p *plugin) stored(e ipsec_types.IpsecSadEntryV3) ipsec_types.IpsecSadEntryV3 {
	const defaultPort, noPort = 4500, 65535
	e.Salt = bits.ReverseBytes32(e.Salt)
	e.CryptoKey.Data, e.IntegrityKey.Data = slices.Clone(e.CryptoKey.Data), slices.Clone(e.IntegrityKey.Data)
	if e.IntegrityAlgorithm == 0 {
		e.IntegrityKey = ipsec_types.Key{Data: make([]byte, len(e.IntegrityKey.Data))}
	}
	for _, port := range []*uint16{&e.UDPSrcPort, &e.UDPDstPort} {
		switch {
		case e.Flags&inUDP == 0:
			*port = 0
		case *port == noPort:
			*port = defaultPort
		}
	}
	switch {
	case e.Flags&isTunnel == 0:
		e.Tunnel = tunnel_types.Tunnel{}
	case e.Tunnel.Src.Af == ip_types.ADDRESS_IP6:
		e.Flags |= isV6
	}
	return e
}

// deleteAssociation gives up one hold. The association stays if there are others.
func (p *plugin) deleteAssociation(q *ipsec.IpsecSadEntryDel, _ *ipsec.IpsecSadEntryDelReply) core.Errno {
	a := p.find(q.ID)
	if a == nil {
		return api.NO_SUCH_ENTRY
	}
	p.release(a)
	return core.OK
}

// dumpAssociations lists all: VPP ignores the number in the request. Clients must therefore
// filter the reply themselves.
func (p *plugin) dumpAssociations(_ *ipsec.IpsecSaV3Dump, yield func(ipsec.IpsecSaV3Details)) {
	for slot, a := range p.associations.each {
		yield(ipsec.IpsecSaV3Details{Entry: a.entry, SwIfIndex: index(core.None), StatIndex: uint32(slot)})
	}
}

// showAssociations prints number, SPI, protocol and ends.
func (p *plugin) showAssociations() string {
	var b strings.Builder
	for _, a := range p.associations.each {
		e := a.entry
		fmt.Fprintf(&b, "sa %d spi %d %s", e.SadID, e.Spi, strings.TrimPrefix(e.Protocol.String(), "IPSEC_API_PROTO_"))
		if e.Flags&isTunnel != 0 {
			fmt.Fprintf(&b, " %s to %s", vppwire.Addr(e.Tunnel.Src), vppwire.Addr(e.Tunnel.Dst))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
