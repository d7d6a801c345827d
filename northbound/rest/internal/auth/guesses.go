package auth

import (
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// guesses bounds the wrong passwords that come from an address with each request. One limit for all addresses would let
// anybody lock out everybody. The zero value has seen none.
type guesses struct {
	mu   sync.Mutex // guards from
	from map[netip.Prefix]*rate.Limiter
}

// mostGuessers bounds the addresses in the map. Further ones share a limit.
const mostGuessers = 4096

// try checks a password from an address, host:port. The error is ErrWrong, or ErrTooMany: an address that has guessed learns
// nothing, not even about the right password. One password is checked at a time, so that many at once are not more.
func (g *guesses) try(remote string, isRight func() bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.of(remote)
	switch {
	case limit.Tokens() < 1:
		return ErrTooMany
	case isRight():
		return nil
	}
	limit.Allow()
	return ErrWrong
}

// of returns the limit of an address. IPv6 addresses count by their network, of which a host has many. The caller holds mu.
func (g *guesses) of(remote string) *rate.Limiter {
	var at netip.Prefix // of what is no address: a Unix socket
	if a, err := netip.ParseAddrPort(remote); err == nil {
		ip, bits := a.Addr().Unmap().WithZone(""), 32
		if ip.Is6() {
			bits = 64
		}
		at, _ = ip.Prefix(bits) // the number of bits fits
	}
	if g.from[at] == nil && len(g.from) >= mostGuessers {
		for old, limit := range g.from { // what has recovered need not be known
			if limit.Tokens() >= loginBurst {
				delete(g.from, old)
			}
		}
		if len(g.from) >= mostGuessers {
			at = netip.Prefix{}
		}
	}
	if g.from == nil {
		g.from = map[netip.Prefix]*rate.Limiter{}
	}
	limit := g.from[at]
	if limit == nil {
		limit = rate.NewLimiter(loginRate, loginBurst)
		g.from[at] = limit
	}
	return limit
}
