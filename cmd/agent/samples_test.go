package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/scheduler"
)

// The samples have no key that is not known, and show the defaults.
func TestSamples(t *testing.T) {
	var sched schedulerConfig
	var orch orchestratorConfig
	for path, into := range map[string]any{"../../conf/kvscheduler.conf": &sched, "../../conf/orchestrator.conf": &orch} {
		unknown, err := config.Load(path, into)
		if err != nil || len(unknown) > 0 {
			t.Errorf("%s: unknown %v, error %v", path, unknown, err)
		}
	}
	want := schedulerConfig{
		Print: true, PrintLimit: 50, Concurrency: 64, OperationTimeout: 30 * time.Second,
		HistoryCount: 10_000, HistoryBytes: 256 << 20, RetryPeriod: time.Second, RetryMaxPeriod: time.Minute,
	}
	if sched != want {
		t.Errorf("kvscheduler.conf says %+v, want the defaults %+v", sched, want)
	}
	priorities := map[string]int{}
	for _, kind := range (&settings{}).storeKinds() {
		priorities[kind.name] = kind.priority
	}
	if !reflect.DeepEqual(orch, orchestratorConfig{priorities, 10 * time.Minute, 100 * time.Millisecond}) {
		t.Errorf("orchestrator.conf says %+v, want the defaults, priorities %v", orch, priorities)
	}
}

func TestPrintTransactionsOrNot(t *testing.T) {
	out := t.Output()
	if got := (schedulerConfig{Print: true}).options(nil, out); got.Out != out {
		t.Error("transactions are not printed")
	}
	if got := (schedulerConfig{}).options(nil, out); got.Out != nil {
		t.Error("transactions are printed though print-txn-summary is false")
	}
	if got := (schedulerConfig{RetryCount: 3}).retry(); got != (scheduler.Retry{Count: 3}) {
		t.Errorf("retry %+v", got)
	}
}
