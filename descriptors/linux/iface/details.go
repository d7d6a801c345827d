package iface

import "github.com/keyplane/keyplane/descriptors/linux/internal/kernel"

// details are what the kernel tells of a link besides the value, for people. The names in JSON are
// those of vpp-agent 3.5.
type details struct {
	Parent        int    `json:"parent_index"`
	Master        int    `json:"master_index"`
	Oper          uint8  `json:"oper_state"`
	Flags         uint32 `json:"flags"`
	Encapsulation string `json:"encapsulation"`
	RxQueues      int    `json:"num_rx_queue"`
	TxQueues      int    `json:"num_tx_queue"`
	TxQueueLen    int    `json:"tx_queue_len"`
	MTU           int    `json:"mtu"` // also the default, which a value leaves out
}

// detailsOf returns the details of a link.
func detailsOf(l kernel.Link) *details {
	a := l.About
	return &details{
		Parent: a.Parent, Master: l.Master, Oper: a.Oper, Flags: a.Flags, Encapsulation: a.Encapsulation,
		RxQueues: a.RxQueues, TxQueues: a.TxQueues, TxQueueLen: a.TxQueueLen, MTU: l.MTU,
	}
}
