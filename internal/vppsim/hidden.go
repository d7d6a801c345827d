package vppsim

// hide takes an interface out of sight, as VPP does with those of GTPU and VXLAN-GPE instead
// of deleting them (VPP gtpu.c and vxlan_gpe.c, free_*_hw_if_indices): its index stays taken,
// no event says that it is gone, and the next of the kind gets it as it was left.
func (w *world) hide(kind string, i *iface) {
	w.setFlags(i, 0)
	w.l2.leave(i.index)
	delete(w.l2.xconnect, i.index)
	delete(w.interfaces.byIndex, i.index)
	w.hidden[kind] = append(w.hidden[kind], i)
}

// unhide is the interface of a kind that was hidden last, or a new one.
func (w *world) unhide(kind string, fresh *iface) *iface {
	kept := w.hidden[kind]
	if len(kept) == 0 {
		w.create(fresh)
		return fresh
	}
	i := kept[len(kept)-1]
	w.hidden[kind] = kept[:len(kept)-1]
	i.device = fresh.device
	w.interfaces.byIndex[i.index] = i
	return i
}
