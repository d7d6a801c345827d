// Package faults is the proof that no change is ever lost: a matrix of stores and
// of what may happen to them, on real servers.
//
//	make faults                                          # all of it, into docs/faults.md
//	go test ./internal/faults                            # small, each fault at one store
//	go test ./internal/faults -args -faults.every        # small, each at all of them
//	go test ./internal/faults -run Matrix/etcd/cut -args -faults.every -faults.seed=7
//
// One cell is one life: a store is filled, an agent follows it all the way from the
// connector to a southbound that is a map, the fault happens, and then what stands
// must come to be what the store holds, within a time that is measured. What is
// written and what is seen on the way (by the source, the orchestrator, the
// southbound) is a history, which the validators of package history judge.
//
// A store is a [Kind]: how to open one, and what can be done to it. A fault is a [Fault]:
// what it needs of a store, and a function of a [Run]. Each is a line in a table, and
// a cell is there where the store can what the fault needs. Texts, names and the order
// of writes come from the seed; how threads and servers interleave does not.
package faults
