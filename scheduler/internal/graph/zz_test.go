package graph

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const rusageThread = 1

func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(rusageThread, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func BenchmarkZ(b *testing.B) {
	const n = 400_000
	runtime.LockOSThread()
	var vs []*Value
	for i := range n {
		if i < n/10 {
			vs = append(vs, &Value{Key: fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i)})
		} else {
			vs = append(vs, &Value{Key: fmt.Sprintf("config/linux/l3/v2/route/10.%d.%d.%d/if%d", i>>16, i>>8&255, i&255, i%(n/10)), Deps: []Dep{{Key: fmt.Sprintf("config/linux/interfaces/v2/interface/if%d", i%(n/10))}}})
		}
	}
	for _, standing := range []bool{false, true} {
		g := New()
		do := func() {
			for op, ok := g.Next(); ok; op, ok = g.Next() {
				g.Done(op, nil, nil)
			}
		}
		if standing {
			for _, v := range vs {
				g.Want(v)
			}
			do()
			for range g.Touched() {
			}
		}
		for range 4 {
			runtime.GC()
			t0 := cpu()
			g.Begin()
			if standing {
				for _, v := range vs {
					g.Unwant(v.Key)
				}
			} else {
				for _, v := range vs {
					g.Want(v)
				}
			}
			t1 := cpu()
			do()
			t2 := cpu()
			w := time.Now()
			g.Rollback()
			b.Log(standing, "want", t1-t0, "do", t2-t1, "rollback", cpu()-t2, "wall", time.Since(w))
		}
	}
}
