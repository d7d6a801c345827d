package agent

import (
	"errors"
	"maps"
	"reflect"
	"testing"

	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/scheduler"
)

// The samples have no key that is not known, and show the defaults.
func TestSamples(t *testing.T) {
	sched, orch := schedulerConfig{}, orchestratorConfig{}
	for path, into := range map[string]validator{"../conf/kvscheduler.conf": &sched, "../conf/orchestrator.conf": &orch} {
		unknown, err := config.Load(path, into)
		if err = errors.Join(err, into.Validate()); err != nil || len(unknown) > 0 {
			t.Errorf("%s: unknown %v, error %v", path, unknown, err)
		}
	}
	if want := defaultScheduler(); sched != want {
		t.Errorf("kvscheduler.conf says %+v, want the defaults %+v", sched, want)
	}
	priorities := map[string]int{}
	for _, kind := range (&settings{}).storeKinds() {
		priorities[kind.name] = kind.priority
	}
	maps.Copy(priorities, clientLayers())
	want := defaultOrchestrator()
	want.Priorities = priorities
	if !reflect.DeepEqual(orch, want) {
		t.Errorf("orchestrator.conf says %+v, want the defaults %+v", orch, want)
	}
}

func TestPrintTransactionsOrNot(t *testing.T) {
	out := t.Output()
	for _, full := range []bool{true, false} {
		if got := (schedulerConfig{Print: full, PrintLimit: 50}).options(state{}, nil, out); got.TransactionLog == nil {
			t.Error("transactions are not printed")
		}
		if got := (schedulerConfig{Print: full}).options(state{}, nil, out); got.TransactionLog != nil {
			t.Error("transactions are printed though print-txn-limit is 0")
		}
	}
	if got := (schedulerConfig{RetryCount: 3}).retry(); got != (scheduler.RetryPolicy{Count: 3}) {
		t.Errorf("retry %+v", got)
	}
}
