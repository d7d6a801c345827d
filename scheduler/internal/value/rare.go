package value

import "unsafe"

// Rare is a part of a value of type V: what most values do not have. A value embeds it, and copies of
// the value share it. The zero Rare has none of it. The setters are for the maker of the value.
type Rare[V any] struct{ of *rare[V] }

type rare[V any] struct {
	err      error
	claims   *[]Claim
	declared *Declared
	derived  []*V
}

// Err is why the value can never be applied; nil: it can.
func (r Rare[V]) Err() error {
	if r.of == nil {
		return nil
	}
	return r.of.err
}

// Declared is the value as it was declared, if that differs from its data; nil: it does not.
func (r Rare[V]) Declared() *Declared {
	if r.of == nil {
		return nil
	}
	return r.of.declared
}

// ClaimSet returns the claims; nil: none. Copies of a value have the same set.
func (r Rare[V]) ClaimSet() *[]Claim {
	if r.of == nil {
		return nil
	}
	return r.of.claims
}

// Claims returns the claims.
func (r Rare[V]) Claims() []Claim {
	if c := r.ClaimSet(); c != nil {
		return *c
	}
	return nil
}

// Derived returns the derived values.
func (r Rare[V]) Derived() []*V {
	if r.of == nil {
		return nil
	}
	return r.of.derived
}

// Bytes is the memory of Rare without what it refers to.
func (r Rare[V]) Bytes() int {
	if r.of == nil {
		return 0
	}
	return int(unsafe.Sizeof(*r.of)) + len(r.of.derived)*int(unsafe.Sizeof((*V)(nil)))
}

// SetErr sets the reason why the value can never be applied.
func (r *Rare[V]) SetErr(err error) {
	of := r.content()
	of.err = err
	r.set(of)
}

// SetClaims sets the claims; nil: none.
func (r *Rare[V]) SetClaims(claims *[]Claim) {
	of := r.content()
	of.claims = claims
	r.set(of)
}

// SetDeclared sets the declared form; nil: it is that of the data.
func (r *Rare[V]) SetDeclared(d *Declared) {
	of := r.content()
	of.declared = d
	r.set(of)
}

// SetDerived sets the derived values.
func (r *Rare[V]) SetDerived(all []*V) {
	of := r.content()
	of.derived = all
	r.set(of)
}

// content returns a copy, because other values may share the content.
func (r *Rare[V]) content() (of rare[V]) {
	if r.of != nil {
		of = *r.of
	}
	return of
}

// set replaces the content.
func (r *Rare[V]) set(of rare[V]) {
	r.of = nil
	if of.err != nil || of.claims != nil || of.declared != nil || len(of.derived) > 0 {
		kept := of // so that only this path allocates
		r.of = &kept
	}
}
