package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

type link struct {
	Index int
	Host  string
}

func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := scheduler.New(scheduler.Options{})
		next := 0
		create := func(v *interfaces.Interface) link {
			next++
			return link{next, v.HostIfName}
		}
		index, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, link]{
			Name: "interface", Model: models.For[*interfaces.Interface](),
			Create: func(_ context.Context, _ string, v *interfaces.Interface) (link, error) { return create(v), nil },
			Update: func(_ context.Context, _ string, _, v *interfaces.Interface, _ link) (link, error) {
				return create(v), nil
			},
			Delete: func(context.Context, string, *interfaces.Interface, link) error { return nil },
		})
		must(t, err)
		byHost := index.By(func(l link) []string { return []string{l.Host} })
		defer begin(t, s)()
		w := index.Watch()
		defer w.Close()
		commit := func(name, host string) {
			v, err := s.Value(key(name), &interfaces.Interface{Name: name, HostIfName: host})
			must(t, err)
			mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		}
		expect := func(want ...string) {
			t.Helper()
			news, err := w.Next(ctx)
			must(t, err)
			var got []string
			for _, n := range news {
				got = append(got, fmt.Sprintf("%s %v %v", n.Name, n.Meta, n.Gone))
			}
			if !slices.Equal(got, want) {
				t.Errorf("watch yields %q, want %q", got, want)
			}
		}
		commit("b", "eth0")
		commit("a", "eth0")
		expect("b {1 eth0} false", "a {2 eth0} false")
		if got := byHost("eth0"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("on eth0: %q", got)
		}
		commit("b", "eth1")
		mustCommit(t, s, scheduler.Txn{Changes: unwantAll([]string{key("a")})})
		expect("b {3 eth1} false", "a {0 } true")
		if got := byHost("eth0"); got != nil {
			t.Errorf("still on eth0: %q", got)
		}
		if m, ok := index.Get("b"); !ok || m.Host != "eth1" || len(index.All()) != 1 {
			t.Errorf("b is %v %v of %v", m, ok, index.All())
		}
		again := index.Watch()
		defer again.Close()
		w = again
		expect("b {3 eth1} false")
	})
}

func TestValidateTellsAll(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			return errors.Join(
				&models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "more"},
				&models.FieldError{Field: "type", Value: v.Type, Expected: "another"},
			)
		},
		Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
			return []scheduler.KeyValue{{Key: "address/" + v.Name, Value: &emptypb.Empty{}}}
		},
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: "address", Prefix: "address/",
		Validate: func(key string, _ *emptypb.Empty) error { return errors.New("no address") },
	})
	must(t, err)
	err = s.Validate(
		scheduler.KeyValue{Key: key("if1"), Value: &interfaces.Interface{Name: "if1"}},
		scheduler.KeyValue{Key: key("if2"), Value: &emptypb.Empty{}},
		scheduler.KeyValue{Key: "nonsense", Value: &emptypb.Empty{}},
	)
	var got []string
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("Validate returns %v", err)
	}
	for _, e := range joined.Unwrap() {
		var v scheduler.KeyError
		if !errors.As(e, &v) {
			t.Fatalf("not a KeyError: %v", e)
		}
		got = append(got, fmt.Sprintf("%s %s %q", short(v.Key), short(v.Base), models.Fields(v)))
	}
	want := []string{`if1  ["mtu" "type"]`, `address/if1 if1 []`, `if2  []`, `nonsense  []`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestValidateTellsWhatTwoClaim(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	net := &fakeNet{}
	net.descriptors(t, s)
	named := func(name string) scheduler.KeyValue {
		return scheduler.KeyValue{Key: key(name), Value: message(name, []string{"host=eth0"})}
	}
	err := s.Validate(named("if2"), named("if1"))
	if got, want := fmt.Sprint(err), key("if2")+`: invalid value: host_if_name is "eth0"; expected a name of its own (see `+key("if1")+")"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := s.Validate(named("if2")); err != nil {
		t.Error(err)
	}
}
