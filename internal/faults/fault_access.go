package faults

import "github.com/keyplane/keyplane/internal/faults/stores"

// accessFaults are changes of the right to read.
func accessFaults() []Fault {
	return []Fault{
		{Name: "login revoked, and granted again", Needs: stores.Users, OneOf: stores.CutAny, Do: revoked},
		{Name: "login expired", Needs: stores.Tokens, OneOf: stores.CutAny, Do: expired},
		{Name: "certificates rotated", Needs: stores.Certificates, Do: rotated},
	}
}

// revoked also cuts the line, because a server continues a watch that it has once allowed.
func revoked(r *Run) {
	r.cut()
	r.Store.Revoke()
	r.Store.Heal()
	r.churn(30)
	r.linger()
	r.Store.Grant()
}

// expired waits for longer than the lifetime of the server's tokens.
func expired(r *Run) {
	r.linger()
	r.churn(10)
	r.cut()
	r.churn(10)
	r.Store.Heal()
}

// rotated replaces the certificates of server and client by those of another authority.
// The agent must read its files again: the ones that it has loaded are refused.
func rotated(r *Run) {
	r.churn(10)
	r.Store.Rotate()
	r.heal()
	r.churn(10)
}
