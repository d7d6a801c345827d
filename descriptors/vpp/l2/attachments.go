package l2

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// ErrAttached reports that the interface already belongs to another bridge domain or
// cross-connect. VPP would end that without an error, and the other value would be lost.
var ErrAttached = errors.New("an interface can be in only one bridge domain or cross-connect")

// An attachment is the bridge domain or the cross-connect that receives the packets of an
// interface.
type attachment struct{ kind, name string }

const (
	inBridge   = "bridge domain"
	inXConnect = "cross-connect"
)

// attachments holds the attachment of each interface by name. It detects conflicts before
// VPP resolves them silently. Retrieve replaces it by VPP's state.
type attachments struct {
	mu  sync.Mutex            // guards all
	all map[string]attachment // nil until the first attachment
}

// add records an attachment. It returns ErrAttached if the interface has another one.
func (u *attachments) add(interfaceName string, to attachment) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now, used := u.all[interfaceName]; used && now != to {
		return fmt.Errorf("interface %s is in %s %s already: %w", interfaceName, now.kind, now.name, ErrAttached)
	}
	u.put(interfaceName, to)
	return nil
}

// put records an attachment. The caller holds mu.
func (u *attachments) put(interfaceName string, to attachment) {
	if u.all == nil {
		u.all = map[string]attachment{}
	}
	u.all[interfaceName] = to
}

// remove deletes an attachment, unless the interface has got another one meanwhile.
func (u *attachments) remove(interfaceName string, of attachment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all[interfaceName] == of {
		delete(u.all, interfaceName)
	}
}

// replace sets all attachments of one kind to those that were read from VPP.
func (u *attachments) replace(kind string, by map[string]attachment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.all, func(_ string, one attachment) bool { return one.kind == kind })
	for name, one := range by {
		u.put(name, one)
	}
}
