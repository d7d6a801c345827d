package vpp

import (
	"log/slog"
	"maps"

	"github.com/keyplane/keyplane/scheduler"
)

// lastRunKey is the key of the last run of VPP in the memory of settings, which has keys of others too.
const lastRunKey = "vpp/run"

// A lastRun remembers the run of VPP with which the agent was connected last. So the next start of the agent
// knows whether VPP has run on meanwhile.
type lastRun struct {
	memory scheduler.Memory // nil: none
	log    *slog.Logger
}

// load returns the remembered run; empty: none.
func (l lastRun) load() string {
	if l.memory == nil {
		return ""
	}
	for key, data := range l.memory.Load() {
		if key == lastRunKey {
			return string(data)
		}
	}
	return ""
}

// save remembers a run.
func (l lastRun) save(run string) {
	if l.memory == nil {
		return
	}
	if err := l.memory.Save(maps.All(map[string][]byte{lastRunKey: []byte(run)})); err != nil {
		l.log.Error("the run of VPP cannot be saved; after a restart of the agent, settings that VPP does not report are applied again", "err", err)
	}
}
