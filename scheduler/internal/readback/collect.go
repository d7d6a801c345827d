package readback

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// Found is the result of reading a part: the items and their keys.
type Found struct {
	Items []kind.Found // with their keys
	shown []kind.Found // those with Shown of a call that learns: no key is there twice
	keys  map[string]bool
}

// ErrTooLarge says that the values of a part need more memory than Part.Most.
var ErrTooLarge = errors.New("the values need too much memory")

// bytesOfItem is about the memory, in bytes, that an item takes besides the encoded value.
const bytesOfItem = 400

// Collect reads back the values of a part, for a scheduler that takes them as what is there. Any
// goroutine may call it. A call that does not return in time is abandoned. When it returns, the
// descriptor is read back again, with those that were not asked because of it.
//
// See Look for those who only want to see the values.
func (rb *Reader) Collect(ctx context.Context, p Part, desired []kind.Desired) (Found, error) {
	read := func(ctx context.Context) (Found, error) { return rb.read(ctx, p, desired, true) }
	return executor.Read(ctx, &p.Of.Reads, rb.Timeout, read, func(took time.Duration) {
		rb.Log.Info("an abandoned call of Retrieve has returned", "descriptor", p.Of.Name, "took", took)
		rb.Again(rb.WithoutAnswer(p.Of)...)
	})
}

// Look is Collect for those who only want to see the values, such as the clients of dumps. It changes
// nothing: the descriptor learns nothing from it. A call
// that they give up is no reason to read the descriptor back, and keeps nobody else from reading
// it: otherwise impatient clients could have it read all the time, while no verb begins.
func (rb *Reader) Look(ctx context.Context, p Part, desired []kind.Desired) (Found, error) {
	read := func(ctx context.Context) (Found, error) { return rb.read(ctx, p, desired, false) }
	return executor.Read(ctx, &p.Of.Looks, rb.Timeout, read, func(took time.Duration) {
		rb.Log.Info("a call of Retrieve that nobody waited for has returned", "descriptor", p.Of.Name, "took", took)
	})
}

// read calls Retrieve and collects its valid items. It ends with ctx if Retrieve obeys it. learns says
// that the descriptor may remember what it has read.
func (rb *Reader) read(ctx context.Context, p Part, desired []kind.Desired, learns bool) (out Found, err error) {
	err = guard.Detailed(func() error {
		out, err = rb.collect(ctx, p, desired, learns)
		return err
	})
	return out, err
}

// strip drops from an item what may hold much of what was read, and reports whether there was something to learn. If learns is
// true, the descriptor learns it before.
func strip(f *kind.Found, learns bool) (learned bool) {
	learned = f.Learned != nil
	if learned && learns {
		f.Learned()
	}
	f.Learned = nil
	if learns {
		f.Details = nil
	}
	return learned
}

// collect is read, and may panic.
func (rb *Reader) collect(ctx context.Context, p Part, desired []kind.Desired, learns bool) (out Found, err error) {
	out.keys = map[string]bool{}
	shown := map[string]kind.Found{}
	left := p.Most
	for f, err := range p.retrieve(ctx, desired) {
		if err != nil {
			return Found{}, err
		}
		if strip(&f, learns) && f.Value == nil {
			continue
		}
		if out.Items == nil { // allocate only if needed
			out.Items, out.keys = make([]kind.Found, 0, len(desired)), make(map[string]bool, len(desired))
		}
		key, err := p.Of.FoundKey(f)
		if err != nil {
			rb.Log.Warn("retrieved value is ignored", "descriptor", p.Of.Name, "key", f.Key, "err", err)
			continue
		}
		if learns && f.Shown {
			f.Key = key
			shown[key] = f
			continue
		}
		if p.Most > 0 {
			if left -= bytesOfItem + int64(len(key)+proto.Size(f.Value)); left < 0 {
				return Found{}, fmt.Errorf("%w: more than %d MB, after %d values", ErrTooLarge, p.Most>>20, len(out.Items))
			}
		}
		if p.Keys != nil && !p.Keys[key] {
			continue
		}
		if out.keys[key] {
			rb.Log.Warn("retrieved twice; the first value counts", "descriptor", p.Of.Name, "key", key)
			continue
		}
		out.keys[key] = true
		f.Key = key
		out.Items = append(out.Items, f)
	}
	out.shown = slices.Collect(maps.Values(shown))
	return out, ctx.Err()
}

// readsAll reports whether the verb for the part reports all values of the descriptor.
func (p Part) readsAll() bool { return p.Keys == nil || p.Of.RetrieveSome == nil }

// retrieve calls the cheapest verb for the part.
func (p Part) retrieve(ctx context.Context, desired []kind.Desired) iter.Seq2[kind.Found, error] {
	if p.readsAll() {
		return p.Of.Retrieve(ctx, desired)
	}
	return p.Of.RetrieveSome(ctx, slices.Sorted(maps.Keys(p.Keys)), desired)
}
