// Package capability tells which Linux capabilities this process has (capabilities(7)).
package capability

import "golang.org/x/sys/unix"

// Has reports whether a capability such as unix.CAP_NET_ADMIN is effective in this process. User 0
// of a container often lacks some. An error of the kernel counts as no.
func Has(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // version 3 has 64 bits in two words
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}
