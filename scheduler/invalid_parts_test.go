package scheduler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// TestInvalidPartsAreBounded declares interfaces with very many addresses. Of an invalid
// interface nothing is derived, and one with too many invalid addresses is invalid.
func TestInvalidPartsAreBounded(t *testing.T) {
	type none = struct{}
	derivations := 0
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(_ string, v *interfaces.Interface) error {
			if v.Mtu > 9000 {
				return &models.FieldError{Field: "mtu", Value: v.Mtu, Expected: "at most 9000"}
			}
			return nil
		},
		Derived: func(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
			derivations++
			for _, addr := range v.IpAddresses {
				out = append(out, scheduler.KeyValue{Key: "address/" + addr, Value: &emptypb.Empty{}})
			}
			return out
		},
	})
	must(t, err)
	_, err = scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, none]{
		Name: "address", Prefix: "address/",
		Validate: func(key string, _ *emptypb.Empty) error {
			if strings.Contains(key, "bad") {
				return errors.New("no address")
			}
			return nil
		},
		Dependencies: func(key string, _ *emptypb.Empty) []scheduler.Dependency {
			if strings.Contains(key, "bad") {
				t.Errorf("Dependencies was called for %s, which is invalid", key)
			}
			return nil
		},
	})
	must(t, err)
	const key = "config/linux/interfaces/v2/interface/if1"
	with := func(addresses int, name string, mtu uint32) *interfaces.Interface {
		v := &interfaces.Interface{Name: "if1", Mtu: mtu}
		for i := range addresses {
			v.IpAddresses = append(v.IpAddresses, fmt.Sprint(name, i))
		}
		return v
	}

	for _, valid := range []*interfaces.Interface{with(5000, "good", 0), with(1000, "bad", 0)} {
		_, err = s.Value(key, valid)
		must(t, err)
	}
	if _, err = s.Value(key, with(1001, "bad", 0)); !errors.Is(err, scheduler.ErrInvalid) || !strings.Contains(err.Error(), "address/bad1000") {
		t.Errorf("with 1001 bad addresses: %v, want an invalid value and one of the addresses", err)
	}
	before := derivations
	if _, err = s.Value(key, with(5, "good", 10_000)); !errors.Is(err, scheduler.ErrInvalid) || derivations != before {
		t.Errorf("an invalid interface: %v, and Derived was called %d times, want 0", err, derivations-before)
	}
	err = s.Validate(scheduler.KeyValue{Key: key, Value: with(3, "bad", 10_000)})
	if all, joined := err.(interface{ Unwrap() []error }); !joined || len(all.Unwrap()) != 4 {
		t.Errorf("Validate returns %v, want an error of the interface and of each of 3 addresses", err)
	}
	err = s.Validate(scheduler.KeyValue{Key: key, Value: with(100_000, "bad", 0)})
	if all, joined := err.(interface{ Unwrap() []error }); !joined || len(all.Unwrap()) != 1 {
		t.Errorf("Validate returns %.300v, want one error about 100,000 addresses", err)
	}
}

// TestInvalidActualValueKeepsItsDependencies checks that a retrieved value is examined as a
// whole even if Validate refuses it. Otherwise it would stay when its dependency leaves.
func TestInvalidActualValueKeepsItsDependencies(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: "thing", Prefix: "thing/",
		Validate: func(string, *emptypb.Empty) error { return errors.New("refused") },
		Dependencies: func(string, *emptypb.Empty) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "base", Key: "base"}}
		},
	})
	must(t, err)
	if got := inspect.Message(s, "thing/a", &emptypb.Empty{}).Dependencies; len(got) != 1 {
		t.Errorf("the dependencies are %v; want base", got)
	}
}

// TestLargeRefusedValuesAreNotKept: the record of a refused value has the value, unless it is
// large: attackers could fill the memory with values that are never applied.
func TestLargeRefusedValuesAreNotKept(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(string, *interfaces.Interface) error { return errors.New("no interface is right") },
	})
	must(t, err)
	defer begin(t, s)()
	for name, kept := range map[string]bool{"short": true, strings.Repeat("long", 32<<10): false} {
		key := "config/linux/interfaces/v2/interface/if1"
		_, err := s.Decode(key, fmt.Appendf(nil, `{"name":"if1","host_if_name":%q}`, name))
		if !errors.Is(err, scheduler.ErrInvalid) {
			t.Fatalf("an invalid value: %v", err)
		}
		rec, _ := s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{{Key: key, Err: err}}})
		if rec == nil || len(rec.Values) != 1 {
			t.Fatalf("the record is %+v", rec)
		}
		history := s.History()
		if got := history[len(history)-1].Values[0].Refused; (got != nil) != kept {
			t.Errorf("of %d bytes, the history has %t, want %t", len(name), got != nil, kept)
		}
	}
}
