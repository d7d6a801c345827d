package l2

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// ErrTaken says that an interface is switched otherwise already: VPP would silently end that.
var ErrAttached = errors.New("VPP has an interface in one bridge domain or one cross-connect")

// A use is what an interface that is switched receives for.
type attachment struct{ kind, name string }

const (
	inBridge   = "bridge domain"
	inXConnect = "cross-connect"
)

// uses are what the interfaces are switched by, by name.
type attachments struct {
	mu  sync.Mutex            // guards all
	all map[string]attachment // nil at first
}

// take notes a use, unless there is another.
func (u *attachments) add(interfaceName string, to attachment) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now, used := u.all[interfaceName]; used && now != to {
		return fmt.Errorf("interface %s is in %s %s already: %w", interfaceName, now.kind, now.name, ErrAttached)
	}
	u.put(interfaceName, to)
	return nil
}

func (u *attachments) put(interfaceName string, to attachment) {
	if u.all == nil {
		u.all = map[string]attachment{}
	}
	u.all[interfaceName] = to
}

// end forgets a use.
func (u *attachments) remove(interfaceName string, of attachment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all[interfaceName] == of {
		delete(u.all, interfaceName)
	}
}

// replace replaces all uses of a kind by what VPP has.
func (u *attachments) replace(kind string, by map[string]attachment) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.all, func(_ string, one attachment) bool { return one.kind == kind })
	for name, one := range by {
		u.put(name, one)
	}
}
