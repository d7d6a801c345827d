package core

// A Number is the instance number of an interface, as in "loop3". VPP counts each kind of
// device for itself, and independently of interface indexes. The zero value is no number.
type Number struct {
	kind string
	N    uint32
}

// numbers are the instance numbers of one kind of device.
type numbers struct {
	used  map[uint32]bool
	first uint32 // all numbers below are in use
}

// Number reserves an instance number: the wanted one, or the lowest free one for None. It
// returns false if the wanted number is in use.
func (v *VPP) Number(kind string, wanted uint32) (Number, bool) {
	of := v.interfaces.numbers[kind]
	if of == nil {
		of = &numbers{used: map[uint32]bool{}}
		v.interfaces.numbers[kind] = of
	}
	if wanted == None {
		for of.used[of.first] {
			of.first++
		}
		wanted = of.first
	}
	if of.used[wanted] {
		return Number{}, false
	}
	of.used[wanted] = true
	return Number{kind, wanted}, true
}

// Free releases a number.
func (v *VPP) Free(n Number) {
	if n.kind == "" {
		return
	}
	of := v.interfaces.numbers[n.kind]
	delete(of.used, n.N)
	of.first = min(of.first, n.N)
}
