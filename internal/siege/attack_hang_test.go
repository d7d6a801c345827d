package siege

import (
	"context"
	"fmt"
	"time"

	"github.com/keyplane/keyplane/internal/vppsim"
)

// hangs has VPP leave requests unanswered, stop altogether, close connections and die.
func hangs(ctx context.Context, t *target) error {
	defer t.vpp.Drop()
	messages := []string{"create_loopback", "sw_interface_add_del_address", "ip_route_add_del", "sw_interface_dump", "sw_interface_set_flags", "control_ping"}
	return t.every(ctx, 3*time.Second, func(n int) error {
		var items []item
		for i := range 20 {
			items = append(items, loop(fmt.Sprintf("loop%d", (n+i)%40), fmt.Sprintf(`,"enabled":true,"ip_addresses":["10.250.%d.%d/32"]`, n%250, i)))
		}
		if err := t.write(ctx, items...); err != nil {
			return err
		}
		t.vpp.Fail(messages[n%len(messages)], vppsim.Fault{})
		t.vpp.Fail(messages[(n+1)%len(messages)], vppsim.Fault{Mute: true, Times: 10})
		switch n % 4 {
		case 1:
			resume := t.vpp.Hang()
			pause(ctx, 2*time.Second)
			resume()
		case 2:
			t.vpp.Drop()
		case 3:
			return t.vpp.Restart()
		}
		return nil
	})
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hungReader has the reader of the agent's log hang for most of the time, as the collector of a full disk does.
func hungReader(ctx context.Context, t *target) error {
	return t.every(ctx, 10*time.Second, func(int) error {
		t.reader.hang(func() { pause(ctx, 8*time.Second) })
		return nil
	})
}
