package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

func TestDecodeTellsAll(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	(&fakeNet{}).descriptors(t, s)
	for _, c := range []struct {
		key, value string
		is         error
		fields     []string
	}{
		{"if1", `{"name":"if1","type":"DUMMY","mtu":1500}`, nil, nil},
		{"if1", `{"name":"if1","type":"DUMMY","mtu":9999}`, scheduler.ErrInvalid, []string{"mtu"}},
		{"if1", `{"name":"if2","type":"DUMMY"}`, models.ErrKeyMismatch, []string{"name"}},
		{"if1", `{"name":"if2","type":"DUMMY","mtu":9999}`, models.ErrKeyMismatch, []string{"name", "mtu"}},
		{"route/10.0.0.0/8/if1", `{"dst_network":"x","outgoing_interface":"if1"}`, nil, []string{"dst_network"}},
		{"arp/x/y", `{"interface":"z","ip_address":"y"}`, models.ErrKeyMismatch, []string{"interface"}},
		{"if1", `{"name":`, models.ErrNotJSON, nil},
		{"config/nothing", `{}`, scheduler.ErrUnimplemented, nil},
	} {
		v, err := s.Decode(key(c.key), []byte(c.value))
		if good := c.is == nil && c.fields == nil; good != (err == nil) || good && v.Key() != key(c.key) {
			t.Errorf("%s %s: %v", c.key, c.value, err)
		}
		if got := models.Fields(err); !slices.Equal(got, c.fields) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s %s: %v: fields %q, want %q, and %v", c.key, c.value, err, got, c.fields, c.is)
		}
	}
	_, err := s.Decode(key("if1"), []byte(`{"name":"if2","type":"DUMMY","mtu":9999}`))
	want := `key and value disagree: key "` + key("if1") + `", but the value makes "` + key("if2") + `": name is "if2"; expected the value in the key; mtu is 9999; expected at most 9216`
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestLargeValuesAreDecodedOneAtATime decodes large and small values at once, of which each
// takes a second to validate.
func TestLargeValuesAreDecodedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var large, most atomic.Int32
		s := scheduler.New(scheduler.Options{})
		_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
			Name: "slow", Model: models.For[*interfaces.Interface](),
			Validate: func(_ string, v *interfaces.Interface) error {
				if len(v.GetHostIfName()) > 1 {
					most.Store(max(most.Load(), large.Add(1)))
					defer large.Add(-1)
				}
				<-time.After(time.Second)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var small, all sync.WaitGroup
		for i := range 10 {
			name := fmt.Sprintf("if%d", i)
			decode := func(host string) {
				if _, err := s.Decode(key(name), []byte(`{"name":"`+name+`","type":"DUMMY","host_if_name":"`+host+`"}`)); err != nil {
					t.Error(err)
				}
			}
			small.Go(func() { decode("s") })
			all.Go(func() { decode(strings.Repeat("l", 1<<20)) })
		}
		small.Wait()
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the small values took %v, want %v", took, time.Second)
		}
		all.Wait()
		if most.Load() != 1 {
			t.Errorf("%d large values were decoded at once, want 1", most.Load())
		}
	})
}
