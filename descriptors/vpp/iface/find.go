package iface

import (
	"context"
	"errors"
	"fmt"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
)

// ErrNotFound reports that an item to which a value refers does not exist in VPP. Dependencies make
// that rare: the item may vanish between the plan and the verb. The scheduler retries the value
// when the item appears.
var ErrNotFound = errors.New("does not exist in VPP")

// Find returns an interface that exists in VPP. The error names it, and wraps ErrNotFound.
func Find(links Index, name string) (Meta, error) {
	meta, ok := links.Get(name)
	if !ok {
		return meta, fmt.Errorf("interface %s: %w", name, ErrNotFound)
	}
	return meta, nil
}

// ErrNoMAC reports an interface without a MAC address, where VPP needs one.
var ErrNoMAC = kinds.ErrNoMAC

// NeedMAC returns an error if an interface has no MAC address in VPP. purpose says what would need
// it. VPP does not check that, and dies.
func NeedMAC(ctx context.Context, api conn.API, name string, meta Meta, purpose string) error {
	return kinds.NeedMAC(ctx, api, name, meta.SwIfIndex(), purpose)
}
