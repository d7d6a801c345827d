package agent

import "testing"

// All stores together take at most half of the memory, and all keys the other half at most; what a file says counts.
func TestBoundsFollowTheMemory(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name    string
		c       orchestratorConfig
		memory  int64
		stores  int
		page    int64
		listing int64
		keys    int
	}{
		{"a large host", defaultOrchestrator(), 64 << 30, 1, 64 * mib, 1024 * mib, 16 << 20},
		{"a large host with all stores", defaultOrchestrator(), 64 << 30, 6, 64 * mib, 1024 * mib, 16 << 20},
		{"a container", defaultOrchestrator(), 512 * mib, 1, 64 * mib, 128 * mib, 131072},
		{"a container with four stores", defaultOrchestrator(), 512 * mib, 4, 16 * mib, 32 * mib, 131072},
		{"hardly any memory", defaultOrchestrator(), 32 * mib, 4, 8 * mib, 16 * mib, 10_000},
		{"a large page", orchestratorConfig{MaxValue: 4 * mib, MaxPage: 100 * mib, MaxKeys: 7}, 32 * mib, 4, 100 * mib, 100 * mib, 7},
		{"a large listing", orchestratorConfig{MaxValue: 4 * mib, MaxListing: 100 * mib}, 32 * mib, 4, 50 * mib, 100 * mib, 10_000},
	} {
		b := test.c.boundsIn(test.memory, test.stores)
		if b.Page != test.page || b.Listing != test.listing || b.Room.Most() != test.keys || b.Validate() != nil {
			t.Errorf("%s: %d, %d, %v, %v; want %d, %d, %d", test.name, b.Page, b.Listing, b.Room.Most(), b.Validate(), test.page, test.listing, test.keys)
		}
	}
}
