package scheduler_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

// TestNormalize declares a value with a field that its descriptor ignores. Verbs and dependencies
// only see the normalized value, people see the declared one and the warning.
func TestNormalize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "config/linux/l3/v2/arp/if1/10.0.0.1/24"
		var log bytes.Buffer
		var stands *l3.ARPEntry
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		_, err := scheduler.Register(s, neighbours(&stands))
		must(t, err)
		defer begin(t, s)()
		declare := func(ip string) *scheduler.Record {
			t.Helper()
			v, err := s.Value(key, &l3.ARPEntry{Interface: "if1", IpAddress: ip})
			must(t, err)
			return mustCommit(t, s, scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{v.Change()}})
		}
		warned := func() int { return strings.Count(log.String(), "level=WARN") }

		declare("10.0.0.1/24")
		if got := stands.GetIpAddress(); got != "10.0.0.1" {
			t.Errorf("Create got address %q, want the normalized one", got)
		}
		if !strings.Contains(log.String(), `ip_address`) || warned() != 1 {
			t.Errorf("the log has %d warnings, want one about ip_address:\n%s", warned(), &log)
		}
		st, _ := s.Status(key)
		if want := st.Desired.(*l3.ARPEntry).GetIpAddress(); want != "10.0.0.1/24" || len(st.Details) != 1 {
			t.Errorf("status shows %q with details %q, want what was declared and its warning", want, st.Details)
		}
		if e := explain.Key(s, key).String(); !strings.Contains(e, "prefix length") {
			t.Errorf("the explanation has no warning: %s", e)
		}

		if r := declare("10.0.0.1/24"); r.Executed.Len() > 0 || warned() != 1 {
			t.Errorf("declared again: operations %v, %d warnings", r.Executed, warned())
		}
		if r := declare("10.0.0.1"); r.Executed.Len() > 0 {
			t.Errorf("declared in the normal spelling: operations %v", r.Executed)
		}
		if st, _ := s.Status(key); len(st.Details) > 0 || st.Desired.(*l3.ARPEntry).GetIpAddress() != "10.0.0.1" {
			t.Errorf("declared in the normal spelling, it still shows %v %q", st.Desired, st.Details)
		}
		if declare("10.0.0.1/24"); warned() != 2 {
			t.Errorf("%d warnings after the value changed back, want 2", warned())
		}
	})
}

// TestNormalizedValueIsRemembered restarts while a value is removed whose normalized form makes
// another key. Its southbound does not say whose its values are, and finds it under that key.
func TestNormalizedValueIsRemembered(t *testing.T) {
	var stands *l3.ARPEntry
	memory := notebook{}
	life := func(ips ...string) {
		synctest.Test(t, func(t *testing.T) {
			s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Memory: memory})
			_, err := scheduler.Register(s, neighbours(&stands))
			must(t, err)
			defer begin(t, s)()
			txn := scheduler.Txn{Refresh: true, Replace: true}
			for _, ip := range ips {
				v, err := s.Value("config/linux/l3/v2/arp/if1/"+ip, &l3.ARPEntry{Interface: "if1", IpAddress: ip})
				must(t, err)
				txn.Changes = append(txn.Changes, v.Change())
			}
			mustCommit(t, s, txn)
		})
	}
	life("10.0.0.1/24")
	life()
	if stands != nil {
		t.Errorf("%v is left behind", stands)
	}
	if len(memory) != 0 {
		t.Errorf("still remembered: %v", memory)
	}
}

// neighbours is a descriptor that ignores prefix lengths, over a southbound with one place.
func neighbours(stands **l3.ARPEntry) scheduler.Descriptor[*l3.ARPEntry, struct{}] {
	type found = scheduler.Found[*l3.ARPEntry, struct{}]
	return scheduler.Descriptor[*l3.ARPEntry, struct{}]{
		Name: "arp", Model: models.For[*l3.ARPEntry](),
		Normalize: func(_ string, v *l3.ARPEntry) (*l3.ARPEntry, []string) {
			addr, length, cut := strings.Cut(v.GetIpAddress(), "/")
			if !cut {
				return v, nil
			}
			v = proto.CloneOf(v)
			v.IpAddress = addr
			return v, []string{models.Ignored("ip_address", "/"+length, "a neighbour has no prefix length")}
		},
		Create: func(_ context.Context, _ string, v *l3.ARPEntry) (struct{}, error) {
			*stands = v
			return struct{}{}, nil
		},
		Delete: func(context.Context, string, *l3.ARPEntry, struct{}) error {
			*stands = nil
			return nil
		},
		Retrieve: func(_ context.Context, wanted []scheduler.Desired[*l3.ARPEntry]) iter.Seq2[found, error] {
			return func(yield func(found, error) bool) {
				switch {
				case *stands == nil:
				case len(wanted) > 0:
					yield(found{Key: wanted[0].Key, Value: proto.CloneOf(*stands)}, nil)
				default:
					yield(found{Value: proto.CloneOf(*stands), OwnerUnknown: true}, nil)
				}
			}
		},
	}
}
