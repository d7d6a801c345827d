package redis

import (
	"context"
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A between runs something once, before the first pipeline: after MGET, and before absent keys are
// read again.
type between struct {
	goredis.Cmdable
	do func()
}

// Pipeline implements goredis.Cmdable.
func (b *between) Pipeline() goredis.Pipeliner {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Cmdable.Pipeline()
}

// A key that is absent for a moment, and is read twice, tears no transaction.
func TestAnAbsentKeyTearsNoTransaction(t *testing.T) {
	t.Parallel()
	client := goredis.NewClient(&goredis.Options{Addr: testkit.StartRedis(t, testkit.RedisOptions{}).Addr})
	defer client.Close()
	box := newInbox("", kvdbsync.Bounds{})
	set := func(pipe goredis.Pipeliner, a any) error {
		pipe.Set(t.Context(), "b", 1, 0)
		pipe.Del(t.Context(), "a")
		if a != nil {
			pipe.Set(t.Context(), "a", a, 0)
			pipe.Set(t.Context(), "b", a, 0)
		}
		return nil
	}
	change := func(a any) {
		if _, err := client.TxPipelined(t.Context(), func(pipe goredis.Pipeliner) error { return set(pipe, a) }); err != nil {
			t.Error(err)
		}
		box.add("a", "b")
	}
	var got []string
	bounds := kvdbsync.Bounds{}.WithDefaults()
	w := &watch{box: box, read: newPager(atOnce(&between{client, func() { change(2) }}, bounds), &paging.Size{}), emit: func(b kvdbsync.Batch) error {
		for _, e := range b.Events {
			got = append(got, fmt.Sprintf("%s=%s", e.Key, e.Value))
		}
		return nil
	}}
	change(nil)
	if err := w.pass(context.Background()); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[a=2 b=2]" {
		t.Errorf("one batch has %v, want a and b of one transaction", got)
	}
}
