package kinds

import (
	"errors"
	"testing"
)

// TestTAPsOfOneNameAtOnce has two be made at the same time.
func TestTAPsOfOneNameAtOnce(t *testing.T) {
	var hosts TAPHosts
	none := func(string) bool { return false }
	err := hosts.take("eth0", "a", none, func() error {
		if err := hosts.take("eth0", "b", none, func() error { return nil }); !errors.Is(err, ErrLinkTaken) {
			t.Errorf("both are made: %v", err)
		}
		return hosts.take("eth1", "b", none, func() error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}
