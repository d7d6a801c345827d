package l2

import (
	"errors"
	"fmt"
	"maps"
	"sync"
)

// ErrTaken says that an interface is switched otherwise already: VPP would silently end that.
var ErrTaken = errors.New("VPP has an interface in one bridge domain or one cross-connect")

// A use is what an interface that is switched receives for.
type use struct{ kind, name string }

const (
	inBridge   = "bridge domain"
	inXConnect = "cross-connect"
)

// uses are what the interfaces are switched by, by name.
type uses struct {
	mu  sync.Mutex     // guards all
	all map[string]use // nil at first
}

// take notes a use, unless there is another.
func (u *uses) take(interfaceName string, to use) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now, used := u.all[interfaceName]; used && now != to {
		return fmt.Errorf("interface %s is in %s %s already: %w", interfaceName, now.kind, now.name, ErrTaken)
	}
	u.put(interfaceName, to)
	return nil
}

func (u *uses) put(interfaceName string, to use) {
	if u.all == nil {
		u.all = map[string]use{}
	}
	u.all[interfaceName] = to
}

// end forgets a use.
func (u *uses) end(interfaceName string, of use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all[interfaceName] == of {
		delete(u.all, interfaceName)
	}
}

// replace replaces all uses of a kind by what VPP has.
func (u *uses) replace(kind string, by map[string]use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.all, func(_ string, one use) bool { return one.kind == kind })
	for name, one := range by {
		u.put(name, one)
	}
}
