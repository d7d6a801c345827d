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

func killed(r *Run) {
	r.churn(20)
	r.Store.Kill()
	r.linger()
	r.Store.Start()
}

func killedAgain(r *Run) {
	for range 3 {
		r.churn(10)
		r.Store.Kill()
		r.Store.Start()
		r.churn(10)
	}
}

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

func stopped(r *Run) {
	r.churn(20)
	r.Store.Pause()
	r.linger()
	r.Store.Continue()
	r.heal()
	r.churn(20)
}

func restored(r *Run) {
	r.distrusted = true
	r.save()
	r.churn(30)
	r.await("before the copy comes back")
	r.restore()
}

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

func leaderMoved(r *Run) {
	for range 2 {
		r.churn(10)
		r.Store.MoveLeader()
	}
}

func leaderKilled(r *Run) {
	r.churn(10)
	back := r.Store.LoseLeader()
	r.heal()
	r.churn(20)
	back()
}

func resharded(r *Run) {
	r.churn(10)
	r.Store.Reshard()
	r.churn(10)
}
