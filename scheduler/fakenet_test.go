package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// fakeNet is a southbound in memory, which prints what is done to it.
type fakeNet struct {
	mu       sync.Mutex
	out      *bytes.Buffer
	stands   map[string]proto.Message
	foreign  map[string]bool
	unknown  bool                     // what stands does not say whose it is
	broken   map[string]string        // "", "terminal", "lacking", "panic", "half": does it, and says no; "slow": does it after a while; "hang": when it is mended
	hung     map[string]chan struct{} // closed when mended, and when the process is killed
	life     int                      // of the process that calls verbs; see kill
	duration time.Duration            // of each verb
	indexes  map[string]int           // of interfaces that stand, by key
	last     int                      // the newest index
}

func (f *fakeNet) do(verb, key string, change func()) error {
	if f.duration > 0 {
		<-time.After(f.duration)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name, life := short(key), f.life
	if f.broken[name] == "hang" {
		c := f.hung[name]
		f.mu.Unlock()
		<-c
		f.mu.Lock()
	}
	if f.broken[name] == "slow" {
		f.mu.Unlock()
		<-time.After(slowness)
		f.mu.Lock()
	}
	if f.life != life {
		return errors.New("killed")
	}
	switch how, ok := f.broken[name]; {
	case ok && how == "slow":
	case ok && how == "panic":
		panic("verb of " + name)
	case ok && how == "terminal":
		fmt.Fprintf(f.out, "  %s %s: terminal\n", verb, name)
		return scheduler.Terminal(errors.New("kernel lacks it"))
	case ok && how == "lacking":
		fmt.Fprintf(f.out, "  %s %s: lacking\n", verb, name)
		return fmt.Errorf("kernel lacks it: %w", scheduler.ErrUnimplemented)
	case ok:
		if how == "half" {
			change()
		}
		fmt.Fprintf(f.out, "  %s %s: broken\n", verb, name)
		return errors.New("broken")
	}
	fmt.Fprintf(f.out, "  %s %s\n", verb, name)
	change()
	return nil
}

// set follows a line of a story.
func (f *fakeNet) set(line []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := line[1]
	switch line[0] {
	case "break":
		f.mend(name)
		f.broken[name] = strings.Join(line[2:], "")
		if f.broken[name] == "hang" {
			if f.hung == nil {
				f.hung = map[string]chan struct{}{}
			}
			f.hung[name] = make(chan struct{})
		}
	case "mend":
		f.mend(name)
	case "vanish":
		f.drop(key(name))()
	default:
		f.stands[key(name)] = message(name, line[2:])
		f.foreign[key(name)] = line[0] == "foreign"
	}
}

// mend has the verbs of name do what they are to do; f.mu is held.
func (f *fakeNet) mend(name string) {
	delete(f.broken, name)
	if c := f.hung[name]; c != nil {
		close(c)
		delete(f.hung, name)
	}
}

// mendAll mends what is broken.
func (f *fakeNet) mendAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range maps.Clone(f.broken) {
		f.mend(name)
	}
}

// kill ends the process that calls verbs. Those that hang or are slow do nothing any more; verbs of
// the next process hang and are slow, too.
func (f *fakeNet) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.life++
	for name, c := range f.hung {
		close(c)
		f.hung[name] = make(chan struct{})
	}
}

// slowness is how long a slow verb or read-back takes: longer than others wait for it.
const slowness = 700 * time.Millisecond

func (f *fakeNet) put(key string, m proto.Message) func() {
	return func() { f.stands[key] = m }
}

// putAddress is put for an address. One whose interface is gone by then is gone with it.
func (f *fakeNet) putAddress(address string, m proto.Message) func() {
	return func() {
		name, _, _ := strings.Cut(strings.TrimPrefix(address, addressPrefix), "/")
		if f.stands[key(name)] != nil {
			f.stands[address] = m
		}
	}
}

// index is the one that an interface has while it stands.
func (f *fakeNet) index(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.indexOf(key)
}

// indexOf is index; f.mu is held.
func (f *fakeNet) indexOf(key string) int {
	if f.stands[key] == nil {
		return 0
	}
	if f.indexes[key] == 0 {
		f.last++
		if f.indexes == nil {
			f.indexes = map[string]int{}
		}
		f.indexes[key] = f.last
	}
	return f.indexes[key]
}

// drop removes what stands under key; the addresses of an interface go with it.
func (f *fakeNet) drop(key string) func() {
	return func() {
		if v, ok := f.stands[key].(*interfaces.Interface); ok {
			maps.DeleteFunc(f.stands, func(k string, _ proto.Message) bool {
				return strings.HasPrefix(k, addressPrefix+v.GetName()+"/address/")
			})
		}
		delete(f.stands, key)
		delete(f.indexes, key)
	}
}

// seen is what stands under key: an interface with the addresses that it has, and a MAC address
// that nobody declares.
func (f *fakeNet) seen(key string) proto.Message {
	v, ok := f.stands[key].(*interfaces.Interface)
	if !ok {
		return f.stands[key]
	}
	v = proto.CloneOf(v)
	v.IpAddresses, v.PhysAddress = nil, "02:00:00:00:00:01"
	for _, k := range slices.Sorted(maps.Keys(f.stands)) {
		if address, ok := strings.CutPrefix(k, addressPrefix+v.Name+"/address/"); ok {
			v.IpAddresses = append(v.IpAddresses, address)
		}
	}
	return v
}

// retrieve yields what stands under prefix.
func retrieve[V proto.Message, M any](f *fakeNet, prefix string, meta func(key string) M) func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
	return func(context.Context, []scheduler.Desired[V]) scheduler.Retrieved[V, M] {
		return func(yield func(scheduler.Found[V, M], error) bool) {
			f.mu.Lock()
			var all []scheduler.Found[V, M]
			for _, key := range slices.Sorted(maps.Keys(f.stands)) {
				if strings.HasPrefix(key, prefix) {
					all = append(all, scheduler.Found[V, M]{Key: key, Value: f.seen(key).(V), Meta: meta(key), Foreign: f.foreign[key], OwnerUnknown: f.unknown})
				}
			}
			how, broken := f.broken["retrieve"]
			hung := f.hung["retrieve"]
			f.mu.Unlock()
			switch {
			case how == "slow": // what is yielded is old by then
				<-time.After(slowness)
			case how == "hang":
				<-hung
			case broken:
				yield(scheduler.Found[V, M]{}, errors.New("dump interrupted"))
				return
			}
			for _, one := range all {
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

const addressPrefix = "linux/interface/"

// descriptors are those of interfaces with derived addresses and a property,
// of routes over them, and of host interfaces that are only noticed.
func (f *fakeNet) descriptors(t *testing.T, s *scheduler.Scheduler) *scheduler.Index[int] {
	type none = struct{}
	nothing := func(string) none { return none{} }
	ifs := models.For[*interfaces.Interface]()
	routes := models.For[*l3.Route]()
	index, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, int]{
		Name: "interface", Model: ifs, Connection: "net",
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9216"}
			}
			return nil
		},
		Equivalent: func(_ string, old, new *interfaces.Interface) bool {
			return old.Mtu == new.Mtu && old.HostIfName == new.HostIfName && old.VrfMasterInterface == new.VrfMasterInterface && old.Type == new.Type && old.GetVeth().GetPeerIfName() == new.GetVeth().GetPeerIfName()
		},
		Recreate: func(_ string, old, new *interfaces.Interface, _ int) bool { return old.Type != new.Type },
		Dependencies: func(_ string, v *interfaces.Interface) []scheduler.Dependency {
			if v.GetVeth() == nil {
				return nil
			}
			return []scheduler.Dependency{{Label: "veth-peer-exists", Key: ifs.KeyOf(v.GetVeth().PeerIfName)}}
		},
		Claims: func(_ string, v *interfaces.Interface) (out []scheduler.Claim) {
			if host := v.GetHostIfName(); host != "" {
				out = append(out, scheduler.Claim{Resource: "host/" + host, Field: "host_if_name", Value: host, Want: "a name of its own"})
			}
			if on := v.GetVrfMasterInterface(); on != "" {
				out = append(out,
					scheduler.Claim{Resource: "below/" + v.Name, Field: "vrf_master_interface", Value: on, Want: "none"},
					scheduler.Claim{Resource: "below/" + on, Field: "vrf_master_interface", Value: on, Want: "one that is on none", Yields: true})
			}
			return out
		},
		Derived: func(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
			for _, a := range v.IpAddresses {
				out = append(out, scheduler.KeyValue{Key: addressPrefix + v.Name + "/address/" + a, Value: &emptypb.Empty{}})
			}
			return append(out, scheduler.KeyValue{Key: "linux/interface/state/" + v.Name + "/UP", Value: &emptypb.Empty{}})
		},
		Create: func(_ context.Context, key string, v *interfaces.Interface) (int, error) {
			err := f.do("create", key, f.put(key, v))
			return f.index(key), err
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, m int) (int, error) {
			return m, f.do("update", key, f.put(key, v))
		},
		Delete: func(_ context.Context, key string, _ *interfaces.Interface, _ int) error {
			return f.do("delete", key, f.drop(key))
		},
		Retrieve: retrieve[*interfaces.Interface](f, ifs.Prefix(), f.indexOf),
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "address", Prefix: addressPrefix, Connection: "net",
		Match: func(key string) bool { return strings.Contains(key, "/address/") },
		// A /32 is borrowed from if3.
		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			if !strings.HasSuffix(key, "/32") {
				return nil
			}
			return []scheduler.Dependency{{Label: "lender-exists", Key: ifs.KeyOf("if3")}}
		},
		Create: func(_ context.Context, key string, v *emptypb.Empty) (none, error) {
			return none{}, f.do("create", key, f.putAddress(key, v))
		},
		Delete: func(_ context.Context, key string, _ *emptypb.Empty, _ none) error {
			return f.do("delete", key, f.drop(key))
		},
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: routes, Connection: "net", RetrieveAfter: []string{"interface"},
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			out := []scheduler.Dependency{{Label: "interface-is-up", Key: "linux/interface/state/" + r.OutgoingInterface + "/UP"}}
			if r.GwAddr != "" {
				out = append(out, scheduler.Dependency{Label: "has-address", Prefixes: []string{addressPrefix + r.OutgoingInterface + "/address/"}})
			}
			return out
		},
		MakeBeforeBreak: func(_ string, r *l3.Route) bool { return r.GwAddr == "" },
		Create: func(_ context.Context, key string, r *l3.Route) (none, error) {
			return none{}, f.do("create", key, f.put(key, r))
		},
		Delete: func(_ context.Context, key string, _ *l3.Route, _ none) error {
			return f.do("delete", key, f.drop(key))
		},
		Retrieve: retrieve[*l3.Route](f, routes.Prefix(), nothing),
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "host", Prefix: "linux/interface/host-name/",
		Retrieve: retrieve[*emptypb.Empty](f, "linux/interface/host-name/", nothing),
	})
	must(t, err)
	return index
}

// above adds a descriptor of another system: each of its values needs an interface.
func (f *fakeNet) above(t *testing.T, s *scheduler.Scheduler) {
	type none = struct{}
	_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "above", Prefix: "above/",
		Dependencies: func(name string, _ *emptypb.Empty) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: key(strings.TrimPrefix(name, "above/"))}}
		},
		Create: func(_ context.Context, key string, v *emptypb.Empty) (none, error) {
			return none{}, f.do("create", key, f.put(key, v))
		},
		Delete: func(_ context.Context, key string, _ *emptypb.Empty, _ none) error {
			return f.do("delete", key, f.drop(key))
		},
		Retrieve: retrieve[*emptypb.Empty](f, "above/", func(string) none { return none{} }),
	})
	must(t, err)
}

const failed = scheduler.Failed

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// group makes the southbound of that name one that is reached by a connection.
func group(t *testing.T, s *scheduler.Scheduler, name string) *scheduler.Connection {
	t.Helper()
	g, err := s.Connection(name)
	must(t, err)
	return g
}

func short(key string) string {
	key = strings.TrimPrefix(key, "config/linux/interfaces/v2/interface/")
	return strings.TrimPrefix(key, "config/linux/l3/v2/")
}

func key(name string) string {
	switch {
	case strings.HasPrefix(name, "route/"), strings.HasPrefix(name, "arp/"):
		return "config/linux/l3/v2/" + name
	case strings.HasPrefix(name, "linux/"), strings.HasPrefix(name, "config/"), strings.HasPrefix(name, "above/"):
		return name
	}
	return "config/linux/interfaces/v2/interface/" + name
}

// message reads "if1 mtu=1 addr=10.0.0.1/24 peer=if2 tap" or "route/10.2.0.0/16/if1 gw".
func message(name string, args []string) proto.Message {
	if strings.HasPrefix(name, "linux/") || strings.HasPrefix(name, "above/") {
		return &emptypb.Empty{}
	}
	if dst, ok := strings.CutPrefix(name, "route/"); ok {
		i := strings.LastIndexByte(dst, '/')
		r := &l3.Route{DstNetwork: dst[:i], OutgoingInterface: dst[i+1:]}
		if slices.Contains(args, "gw") {
			r.GwAddr = "10.0.0.9"
		}
		return r
	}
	v := &interfaces.Interface{Name: name, Type: interfaces.Interface_DUMMY}
	for _, a := range args {
		field, arg, _ := strings.Cut(a, "=")
		switch field {
		case "mtu":
			mtu, _ := strconv.ParseUint(arg, 10, 32)
			v.Mtu = uint32(mtu)
		case "addr":
			v.IpAddresses = append(v.IpAddresses, arg)
		case "peer":
			v.Link = &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: arg}}
		case "host":
			v.HostIfName = arg
		case "on":
			v.VrfMasterInterface = arg
		case "tap":
			v.Type = interfaces.Interface_TAP_TO_VPP
		}
	}
	return v
}

// log is what was done so far.
func (f *fakeNet) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.String()
}

func (f *fakeNet) write(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.WriteString(text)
}
