package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator"
)

// claims are those below a prefix, a line each.
func (r *rig) claims(t *testing.T, prefix string) string {
	t.Helper()
	all, err := r.orch.DeclarationsUnder(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s %d %s", c.Key[strings.LastIndex(c.Key, "/")+1:], c.Source, c.Priority, c.State())
		if c.Effective {
			b.WriteString(" wins")
		}
		if c.Err != nil && c.HasValid {
			b.WriteString(" earlier")
		}
		if c.Remembered {
			b.WriteString(" remembered")
		}
		if c.Doubted {
			b.WriteString(" doubted")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *rig) health() string {
	var b strings.Builder
	for _, h := range r.orch.Health() {
		fmt.Fprintf(&b, "%s %d complete=%v refused=%d remembered=%d doubted=%d\n", h.Source, h.Priority, h.Complete, h.Refused, h.Remembered, h.Doubted)
	}
	return b.String()
}

func TestClaims(t *testing.T) {
	layers := map[string]int{"files": 2, "etcd": 1}
	memory := newNotebook()
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		r.give("etcd", listed("if1=1 if2=2 if4=4"))
		r.give("files", listed("if1=99999 if2=7 if3=3"))
		r.give("files", kvdbsync.Change{Events: append(events("if3={"), kvdbsync.Event{Key: "config/vpp/v2/interfaces/v1", Value: []byte(`{"name":"v1"}`)})})
		want := `if1 files 2 refused
if1 etcd 1 valid wins
if2 files 2 valid wins
if2 etcd 1 valid
if3 files 2 refused wins earlier
if4 etcd 1 valid wins
v1 files 2 unimplemented
`
		if got := r.claims(t, "config/"); got != want {
			t.Errorf("claims\n%s\nwant\n%s", got, want)
		}
		one, err := r.orch.Declarations(t.Context(), prefix+"if1")
		if err != nil || len(one) != 2 || !strings.Contains(fmt.Sprint(one[0].Err), "at most 9216") {
			t.Errorf("%+v, %v", one, err)
		}
		if got, want := r.health(), "files 2 complete=true refused=3 remembered=0 doubted=0\netcd 1 complete=true refused=0 remembered=0 doubted=0\n"; got != want {
			t.Errorf("health\n%s\nwant\n%s", got, want)
		}
	})
	life(t, layers, "", memory, func(t *testing.T, r *rig) {
		<-time.After(time.Second)
		synctest.Wait()
		r.give("etcd", listed(""))
		want := `if1 files 2 refused remembered
if1 etcd 1 valid wins doubted
if2 files 2 valid wins remembered
if2 etcd 1 valid doubted
if3 files 2 refused wins earlier remembered
if4 etcd 1 valid wins doubted
`
		if got := r.claims(t, prefix); got != want {
			t.Errorf("claims\n%s\nwant\n%s", got, want)
		}
		if got, want := r.health(), "files 2 complete=false refused=3 remembered=4 doubted=0\netcd 1 complete=true refused=0 remembered=0 doubted=3\n"; got != want {
			t.Errorf("health\n%s\nwant\n%s", got, want)
		}
	})
}

func TestClaimsWhenNobodyAnswers(t *testing.T) {
	o := orchestrator.New(nil, orchestrator.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Declarations(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("before the beginning: %v", err)
	}
	if err := o.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Declarations(t.Context(), "x"); !errors.Is(err, orchestrator.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}

// TestClaimsOfManyKeys lists more keys than are looked up at once, of which two sources have some.
func TestClaimsOfManyKeys(t *testing.T) {
	life(t, map[string]int{"files": 2, "etcd": 1}, "", newNotebook(), func(t *testing.T, r *rig) {
		const many = 1201
		var names, want strings.Builder
		for i := range many {
			fmt.Fprintf(&names, " if%04d=1", i)
			if i == 700 {
				fmt.Fprintf(&want, "if%04d files 2 valid wins\nif%04d etcd 1 valid\n", i, i)
				continue
			}
			fmt.Fprintf(&want, "if%04d etcd 1 valid wins\n", i)
		}
		r.give("etcd", listed(strings.TrimSpace(names.String())))
		r.give("files", listed("if0700=7"))
		if got := r.claims(t, "config/"); got != want.String() {
			t.Errorf("claims\n%.300s\nwant\n%.300s", got, want.String())
		}
	})
}
