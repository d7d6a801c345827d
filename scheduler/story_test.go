package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

var update = flag.Bool("update", false, "write what the stories show into their files")

// fakeNet is a southbound in memory, which prints what is done to it.
type fakeNet struct {
	mu      sync.Mutex
	out     *bytes.Buffer
	stands  map[string]proto.Message
	foreign map[string]bool
	unknown bool              // what stands does not say whose it is
	broken  map[string]string // "", "terminal", "panic"
	indexes int
}

func (f *fakeNet) do(verb, key string, change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := short(key)
	switch how, ok := f.broken[name]; {
	case ok && how == "panic":
		panic("verb of " + name)
	case ok && how == "terminal":
		fmt.Fprintf(f.out, "  %s %s: terminal\n", verb, name)
		return scheduler.Terminal(errors.New("kernel lacks it"))
	case ok:
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
		f.broken[name] = strings.Join(line[2:], "")
	case "mend":
		delete(f.broken, name)
	case "vanish":
		delete(f.stands, key(name))
		maps.DeleteFunc(f.stands, func(k string, _ proto.Message) bool {
			return strings.HasPrefix(k, addressPrefix+name+"/address/") // they go with their interface
		})
	default:
		f.stands[key(name)] = message(name, line[2:])
		f.foreign[key(name)] = line[0] == "foreign"
	}
}

func (f *fakeNet) put(key string, m proto.Message) func() {
	return func() { f.stands[key] = m }
}

func (f *fakeNet) drop(key string) func() { return func() { delete(f.stands, key) } }

// seen is what stands under key: an interface with the addresses that it has.
func (f *fakeNet) seen(key string) proto.Message {
	v, ok := f.stands[key].(*interfaces.Interface)
	if !ok {
		return f.stands[key]
	}
	v = proto.CloneOf(v)
	v.IpAddresses = nil
	for _, k := range slices.Sorted(maps.Keys(f.stands)) {
		if address, ok := strings.CutPrefix(k, addressPrefix+v.Name+"/address/"); ok {
			v.IpAddresses = append(v.IpAddresses, address)
		}
	}
	return v
}

// retrieve yields what stands under prefix.
func retrieve[V proto.Message, M any](f *fakeNet, prefix string, meta M) func(context.Context, []scheduler.Wanted[V]) iter.Seq2[scheduler.Found[V, M], error] {
	return func(context.Context, []scheduler.Wanted[V]) iter.Seq2[scheduler.Found[V, M], error] {
		return func(yield func(scheduler.Found[V, M], error) bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if _, ok := f.broken["retrieve"]; ok {
				yield(scheduler.Found[V, M]{}, errors.New("dump interrupted"))
				return
			}
			for _, key := range slices.Sorted(maps.Keys(f.stands)) {
				if strings.HasPrefix(key, prefix) && !yield(scheduler.Found[V, M]{Key: key, Value: f.seen(key).(V), Meta: meta, Foreign: f.foreign[key], Unknown: f.unknown}, nil) {
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
	ifs := models.For[*interfaces.Interface]()
	routes := models.For[*l3.Route]()
	index, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, int]{
		Name: "interface", Model: ifs, Southbound: "net",
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9216 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Want: "at most 9216"}
			}
			return nil
		},
		Equivalent: func(_ string, old, new *interfaces.Interface) bool {
			return old.Mtu == new.Mtu && old.Type == new.Type && old.GetVeth().GetPeerIfName() == new.GetVeth().GetPeerIfName()
		},
		Recreate: func(_ string, old, new *interfaces.Interface, _ int) bool { return old.Type != new.Type },
		Dependencies: func(_ string, v *interfaces.Interface) []scheduler.Dependency {
			if v.GetVeth() == nil {
				return nil
			}
			return []scheduler.Dependency{{Label: "veth-peer-exists", Key: ifs.KeyOf(v.GetVeth().PeerIfName)}}
		},
		Derived: func(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
			for _, a := range v.IpAddresses {
				out = append(out, scheduler.KeyValue{Key: addressPrefix + v.Name + "/address/" + a, Value: &emptypb.Empty{}})
			}
			return append(out, scheduler.KeyValue{Key: "linux/interface/state/" + v.Name + "/UP", Value: &emptypb.Empty{}})
		},
		Create: func(_ context.Context, key string, v *interfaces.Interface) (int, error) {
			f.mu.Lock()
			f.indexes++
			index := f.indexes
			f.mu.Unlock()
			return index, f.do("create", key, f.put(key, v))
		},
		Update: func(_ context.Context, key string, _, v *interfaces.Interface, m int) (int, error) {
			return m, f.do("update", key, f.put(key, v))
		},
		Delete: func(_ context.Context, key string, _ *interfaces.Interface, _ int) error {
			return f.do("delete", key, f.drop(key))
		},
		Retrieve: retrieve[*interfaces.Interface](f, ifs.Prefix(), 7),
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "address", Prefix: addressPrefix, Southbound: "net",
		Match: func(key string) bool { return strings.Contains(key, "/address/") },
		Create: func(_ context.Context, key string, v *emptypb.Empty) (none, error) {
			return none{}, f.do("create", key, f.put(key, v))
		},
		Delete: func(_ context.Context, key string, _ *emptypb.Empty, _ none) error {
			return f.do("delete", key, f.drop(key))
		},
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*l3.Route, none]{
		Name: "route", Model: routes, Southbound: "net", RetrieveAfter: []string{"interface"},
		Dependencies: func(_ string, r *l3.Route) []scheduler.Dependency {
			out := []scheduler.Dependency{{Label: "interface-is-up", Key: "linux/interface/state/" + r.OutgoingInterface + "/UP"}}
			if r.GwAddr != "" {
				out = append(out, scheduler.Dependency{Label: "has-address", Prefixes: []string{addressPrefix + r.OutgoingInterface + "/address/"}})
			}
			return out
		},
		Create: func(_ context.Context, key string, r *l3.Route) (none, error) {
			return none{}, f.do("create", key, f.put(key, r))
		},
		Delete: func(_ context.Context, key string, _ *l3.Route, _ none) error {
			return f.do("delete", key, f.drop(key))
		},
		Retrieve: retrieve[*l3.Route](f, routes.Prefix(), none{}),
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "host", Prefix: "linux/interface/host-name/",
		Retrieve: retrieve[*emptypb.Empty](f, "linux/interface/host-name/", none{}),
	})
	must(t, err)
	return index
}

const failed = kvscheduler.ValueState_FAILED

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func short(key string) string {
	key = strings.TrimPrefix(key, "config/linux/interfaces/v2/interface/")
	return strings.TrimPrefix(key, "config/linux/l3/v2/")
}

// A story drives a scheduler over a fakeNet by text.
type story struct {
	t     *testing.T
	net   *fakeNet
	sched *scheduler.Scheduler
	index *scheduler.Index[int]
	group *scheduler.Group
	watch *scheduler.Watch
	txn   scheduler.Txn
}

func key(name string) string {
	switch {
	case strings.HasPrefix(name, "route/"), strings.HasPrefix(name, "arp/"):
		return "config/linux/l3/v2/" + name
	case strings.HasPrefix(name, "linux/"), strings.HasPrefix(name, "config/"):
		return name
	}
	return "config/linux/interfaces/v2/interface/" + name
}

// message reads "if1 mtu=1 addr=10.0.0.1/24 peer=if2 tap" or "route/10.2.0.0/16/if1 gw".
func message(name string, args []string) proto.Message {
	if strings.HasPrefix(name, "linux/") {
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
		case "tap":
			v.Type = interfaces.Interface_TAP_TO_VPP
		}
	}
	return v
}

func (s *story) line(f []string) {
	switch f[0] {
	case "want":
		v, err := s.sched.Value(key(f[1]), message(f[1], f[2:]))
		if err != nil {
			s.change(scheduler.Reject(key(f[1]), err, nil))
			return
		}
		s.change(scheduler.Want(v))
	case "unwant":
		s.change(scheduler.Unwant(key(f[1])))
	case "commit":
		s.commit(f[1:])
	case "break", "mend", "stands", "foreign", "vanish":
		s.net.set(f)
	case "see":
		s.sched.Observe(scheduler.Observed{Key: key(f[1]), Value: s.net.stands[key(f[1])]})
	case "refresh":
		s.sched.Refresh(f[1:]...)
	case "retry":
		s.sched.Retry(f[1:]...)
	case "sleep":
		d, err := time.ParseDuration(f[1])
		must(s.t, err)
		<-time.After(d)
	case "explain":
		s.print(s.sched.Explain(key(f[1])).String())
	case "plan":
		s.plan()
	case "lost":
		s.group.Lost(errors.New(strings.Join(f[1:], " ")))
	case "ready":
		s.group.Ready()
	case "news":
		s.news()
	case "wait":
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		defer cancel()
		if err := s.sched.Wait(ctx, key(f[1])); err != nil {
			s.print("error: " + err.Error())
		}
	case "status":
		s.status()
	case "text":
		h := s.sched.History()
		s.print(clock.ReplaceAllString(h[len(h)-1].Text(-1), "TIME"))
	case "index":
		for _, name := range slices.Sorted(maps.Keys(s.index.All())) {
			m, _ := s.index.Get(name)
			s.print(fmt.Sprintf("%s %d", name, m))
		}
	default:
		s.t.Fatalf("unknown command %q", f)
	}
	synctest.Wait()
}

var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d [\d:.]+`)

func (s *story) change(c scheduler.Change) { s.txn.Changes = append(s.txn.Changes, c) }

func (s *story) commit(flags []string) {
	txn := s.txn
	s.txn = scheduler.Txn{}
	for _, f := range flags {
		switch f {
		case "refresh":
			txn.Refresh = true
		case "replace":
			txn.Replace = true
		case "simulate":
			txn.Simulate = true
		case "revert":
			txn.Revert = true
		case "once":
			txn.Retry.Never = true
		case "twice":
			txn.Retry.Count = 2
		default:
			txn.Description += f
		}
	}
	r, err := s.sched.Commit(s.t.Context(), txn)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		s.print("error: " + line)
	}
	for _, err := range r.Unrefreshed {
		s.print("not refreshed: " + err.Error())
	}
}

func (s *story) plan() {
	r, err := s.sched.Plan(s.t.Context(), s.txn)
	must(s.t, err)
	s.txn = scheduler.Txn{}
	for _, op := range r.Planned {
		s.print(strings.TrimRight(fmt.Sprintf("%s %s %s", op.Verb, short(op.Key), strings.Join(op.Flags(), " ")), " "))
	}
}

// news prints what the watch has seen since the last time.
func (s *story) news() {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	news, err := s.watch.Next(ctx)
	if err != nil {
		s.print("none")
	}
	for _, st := range news {
		s.print(fmt.Sprintf("%s %s", short(st.Key), st.State))
	}
}

func (f *fakeNet) write(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.WriteString(text)
}

func (s *story) print(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.net.write("  " + strings.TrimRight(line, "\n") + "\n")
	}
}

func (s *story) status() {
	for _, st := range s.sched.Statuses("") {
		text := fmt.Sprintf("%s %s", short(st.Key), st.State)
		if len(st.Details) > 0 {
			text += fmt.Sprintf(" %v", st.Details)
		}
		if st.Err != nil {
			line, _, _ := strings.Cut(st.Err.Error(), "\n")
			text += ": " + line
		}
		s.print(text)
	}
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			must(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = tell(t, string(want)) })
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o644))
			}
			if got != string(want) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

func tell(t *testing.T, text string) string {
	t.Helper()
	net := &fakeNet{out: &bytes.Buffer{}, stands: map[string]proto.Message{}, foreign: map[string]bool{}, broken: map[string]string{}}
	s := &story{t: t, net: net}
	s.sched = scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Concurrency: 1})
	if strings.HasPrefix(text, "# connected\n") {
		s.group = s.sched.Group("net")
	}
	s.watch = s.sched.Watch("config/")
	defer s.watch.Close()
	s.index = net.descriptors(t, s.sched)
	stop := begin(t, s.sched)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue // what was shown
		}
		net.write(line)
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			s.line(f)
		}
	}
	stop()
	net.mu.Lock()
	defer net.mu.Unlock()
	return net.out.String()
}
