package faults

import (
	"time"

	"github.com/keyplane/keyplane/internal/faults/stores"
)

// serverFaults are faults of a server and its data.
func serverFaults() []Fault {
	return []Fault{
		{Name: "server killed, started with its data", Needs: stores.Servers, Do: killed},
		{Name: "server killed again and again while it is written", Needs: stores.Servers, Do: killedAgain},
		{Name: "server killed, started without its data", Needs: stores.Emptied, Do: killedEmptied},
		{Name: "server stopped (SIGSTOP) and continued", Needs: stores.Servers, Do: stopped},
		{Name: "restored from an older copy", Needs: stores.Copies, Do: restored},
		{Name: "restored from an older copy, and written past where it was", Needs: stores.Copies, OneOf: stores.CutAny, Do: restoredAndOn},
		{Name: "leader moved", Needs: stores.Leaders, Do: leaderMoved},
		{Name: "leader killed, and back", Needs: stores.LeaderLoss, Do: leaderKilled},
		{Name: "cluster resharded", Needs: stores.Resharding, Do: resharded},
	}
}

// killed ends the server for the length of the fault; its data stay.
func killed(r *Run) {
	r.churn(20)
	r.Store.Kill()
	r.linger()
	r.Store.Start()
}

// killedAgain writes both before and after each kill, without waiting for the agent. So a
// watch of the agent may never get as far as to be synced.
func killedAgain(r *Run) {
	for range 3 {
		r.churn(10)
		r.Store.Kill()
		r.Store.Start()
		r.churn(10)
	}
}

// killedEmptied returns a server without data, where half of the keys are written again.
// The other half must go, but only after the grace time: it could be a mistake.
func killedEmptied(r *Run) {
	r.distrusted = true
	r.churn(20)
	begun := time.Now()
	r.Store.Kill()
	r.Store.Wipe()
	r.wiped(begun, map[string]string{})
	r.Store.Start()
	r.Put(r.names(r.Scale.Keys / 2)...)
}

// stopped freezes the server. Connections stay open and say nothing, unlike after a kill.
func stopped(r *Run) {
	r.churn(20)
	r.Store.Pause()
	r.linger()
	r.Store.Continue()
	r.heal()
	r.churn(20)
}

// restored brings back older content. The revision of the store goes back with it, so the
// agent cannot tell by numbers which of its keys are newer.
func restored(r *Run) {
	r.distrusted = true
	r.save()
	r.churn(30)
	r.await("before the copy comes back")
	r.restore()
}

// restoredAndOn also writes until the revision is higher than before the restoration,
// while the agent is cut off. Its watch could then continue as if nothing had happened.
func restoredAndOn(r *Run) {
	r.distrusted = true
	r.save()
	r.churn(20)
	r.await("before the copy comes back")
	r.cut()
	r.restore()
	r.churn(60)
	r.Store.Heal()
}

// leaderMoved hands over the lead twice, without the loss of a server.
func leaderMoved(r *Run) {
	for range 2 {
		r.churn(10)
		r.Store.MoveLeader()
	}
}

// leaderKilled writes while the leader is away, and starts it again at the end.
func leaderKilled(r *Run) {
	r.churn(10)
	back := r.Store.LoseLeader()
	r.heal()
	r.churn(20)
	back()
}

// resharded moves keys to a node that the agent has not known before.
func resharded(r *Run) {
	r.churn(10)
	r.Store.Reshard()
	r.churn(10)
}
