package iptables

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/proto/ligato/linux/iptables"
)

// manyRules is how many rules the benchmarks install.
const manyRules = 10_000

// manyIn returns a chain with manyRules rules.
func manyIn(b *testing.B) *iptables.RuleChain {
	v := chainIn(b, `name: "many" chain_name: "many"`)
	for i := range manyRules {
		v.Rules = append(v.Rules, fmt.Sprintf("-s 10.%d.%d.1/32 -p tcp -m tcp --dport %d -j ACCEPT", i/256, i%256, 1000+i))
	}
	return v
}

// BenchmarkRules compares Create, which lists the rules, and the seal that follows it, with iptables-restore and
// iptables-save of the same rules.
func BenchmarkRules(b *testing.B) {
	b.Run("without-iptables/create", func(b *testing.B) {
		h := withoutPrograms(b)
		v := manyIn(b)
		benchmarkCreate(b, h, v, false)
	})
	for _, variant := range variants() {
		b.Run(variant+"/create", func(b *testing.B) {
			withVariant(b, variant)
			h := inRed(b)
			v := manyIn(b)
			benchmarkCreate(b, h, v, false)
		})
		b.Run(variant+"/create-and-seal", func(b *testing.B) {
			withVariant(b, variant)
			h := inRed(b)
			v := manyIn(b)
			benchmarkCreate(b, h, v, true)
		})
		b.Run(variant+"/iptables-restore-and-save", func(b *testing.B) {
			withVariant(b, variant)
			h := inRed(b)
			v := manyIn(b)
			text := "*filter\n:many - [0:0]\n-A many " + strings.Join(v.GetRules(), "\n-A many ") + "\nCOMMIT\n"
			var cpu meter
			for b.Loop() {
				cpu.start()
				restore := exec.Command("ip", "netns", "exec", h.name, "iptables-restore", "--noflush")
				restore.Stdin = strings.NewReader(text)
				if out, err := restore.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				h.do("iptables-save")
				cpu.stop()
				b.StopTimer()
				h.do("iptables -F many")
				h.do("iptables -X many")
				b.StartTimer()
			}
			cpu.report(b)
		})
	}
}

// A meter adds up the processor time of the test and its children, which a busy machine changes
// less than the wall time.
type meter struct{ sum, began time.Duration }

func (m *meter) start() { m.began = used() }
func (m *meter) stop()  { m.sum += used() - m.began }

func (m *meter) report(b *testing.B) {
	b.ReportMetric(float64(m.sum.Milliseconds())/float64(b.N), "cpu-ms/op")
}

// used returns the processor time so far.
func used() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func benchmarkCreate(b *testing.B, h *host, v *iptables.RuleChain, seal bool) {
	d := h.descriptor()
	var cpu meter
	for b.Loop() {
		cpu.start()
		m, err := d.Create(b.Context(), "key", v)
		if err != nil {
			b.Fatal(err)
		}
		if seal {
			h.recheck()
		}
		cpu.stop()
		b.StopTimer()
		if err := d.Delete(context.Background(), "key", v, m); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	cpu.report(b)
}
