package kind

import "github.com/keyplane/keyplane/scheduler/internal/graph"

// A Mistake is why a value cannot be applied.
type Mistake struct {
	Key  string
	Base string // of a derived value: the key of its base
	Err  error
}

// Mistakes checks declared values with their derived values, and that no two of them claim one
// resource. A key without a descriptor is a mistake, too.
func (r *Registry) Mistakes(values []Desired) (out []Mistake) {
	all := graph.New()
	for _, kv := range values {
		d := r.Of(kv.Key)
		if d == nil {
			out = append(out, Mistake{Key: kv.Key, Err: ErrUnimplemented})
			continue
		}
		v := r.DeclaredWhole(d, kv.Key, kv.Value)
		out = append(out, faults(v, "")...)
		all.Want(v)
	}
	all.ResolveClaims()
	for n := range all.Touched() {
		if !n.LosesClaim() {
			continue
		}
		wrong := Mistake{Key: n.Key(), Err: ErrOf(n)}
		if n.Base() != nil {
			wrong.Base = n.Base().Key()
		}
		out = append(out, wrong)
	}
	return out
}

// faults returns the mistakes of v and its derived values. An invalid base is no reason to
// hide the mistakes of its parts: whoever corrects a document wants to see all of them.
func faults(v *graph.Value, base string) (out []Mistake) {
	if v.Err() != nil {
		out = append(out, Mistake{Key: v.Key, Base: base, Err: v.Err()})
	}
	for _, d := range v.Derived() {
		out = append(out, faults(d, v.Key)...)
	}
	return out
}
