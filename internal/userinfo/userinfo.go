// Package userinfo finds a user and a password within the address of a store, where they would be shown with the
// address in logs, errors and answers.
package userinfo

import "strings"

// split returns the parts of an address before and after its user and password. The path of a socket has none.
func split(address string) (before, after string, has bool) {
	scheme, rest, given := strings.Cut(address, "://")
	if given {
		before = scheme + "://"
	} else {
		rest = address
	}
	if strings.HasPrefix(rest, "/") || strings.HasPrefix(scheme, "unix") && given {
		return "", "", false
	}
	at := strings.LastIndexByte(rest, '@') // a password may have one, too
	if at < 0 {
		return "", "", false
	}
	return before, rest[at+1:], true
}

// In reports whether an address has a user or a password.
func In(address string) bool {
	_, _, has := split(address)
	return has
}

// Hidden returns the address without the user and the password.
func Hidden(address string) string {
	before, after, has := split(address)
	if !has {
		return address
	}
	return before + "(secret)@" + after
}
