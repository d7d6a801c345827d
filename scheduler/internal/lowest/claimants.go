package lowest

// A Claim is that of one version of an element on one resource.
type Claim[E Element] struct {
	By       E
	Yields   bool // it shares the resource with other claims that yield, and leaves it to one that does not
	Stands   bool // the version uses the resource now
	Competes bool // the version is the one of the element that is to use the resource
	GivesUp  bool // the version has lost another claim, so that it keeps nothing from others
}

// Claimants are the elements that compete for one resource. Only the lowest two keys of each group matter: the lowest, and the
// one that others see if they are the lowest themselves.
type Claimants[E interface {
	Element
	Outranks(other E) bool
}] struct {
	first                   E      // it holds the resource, among those that do not yield
	exclusive               Two[E] // they desire it and do not yield
	actual, actualExclusive Two[E]
}

// Add counts one claim.
func (all *Claimants[E]) Add(c Claim[E]) {
	var none E
	if c.Competes && !c.Yields {
		all.exclusive.Add(c.By)
		if !c.GivesUp && (all.first == none || c.By.Outranks(all.first)) {
			all.first = c.By
		}
	}
	if !c.Stands {
		return
	}
	all.actual.Add(c.By)
	if !c.Yields {
		all.actualExclusive.Add(c.By)
	}
}

// Result returns the holder that a claim loses to, or a user that must leave first; the zero value if it waits for nobody. lost
// says which.
func (all *Claimants[E]) Result(c Claim[E]) (holder E, lost bool) {
	var none E
	if by := all.winner(c); by != none {
		return by, true
	}
	return all.remainingUser(c), false
}

// winner returns the element that a claim loses to.
func (all *Claimants[E]) winner(c Claim[E]) (none E) {
	switch {
	case c.Yields:
		return all.exclusive.Except(c.By)
	case all.first == none || all.first == c.By:
		return none
	case c.Competes && c.By.Outranks(all.first):
		return none
	}
	return all.first
}

// remainingUser returns another element that still uses the resource.
func (all *Claimants[E]) remainingUser(c Claim[E]) (none E) {
	switch {
	case c.Stands:
		return none
	case c.Yields:
		return all.actualExclusive.Except(c.By)
	}
	return all.actual.Except(c.By)
}
