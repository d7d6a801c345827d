// Package faults tests that no change is ever lost: a matrix of stores and faults, on real
// servers. It is test code: no product package imports it.
//
//	make faults                                          # all of it, into docs/faults.md
//	go test ./internal/faults                            # small, each fault at one store
//	go test ./internal/faults -args -faults.every        # small, each fault at all stores
//	go test ./internal/faults -run Matrix/etcd/cut -args -faults.every -faults.seed=7
//
// A cell of the matrix is one life of an agent. A store is filled, and an agent follows it,
// from the connector to a southbound that is a map. Then the fault happens. The southbound
// must come to equal the store within a bound, and the test measures the time. All writes
// form a history, together with the observations of the source, the orchestrator and the
// southbound. The validators of package history check the history.
//
// Package stores has the stores: a [stores.Kind] says how to open a store, and which
// abilities it has. A [Fault] needs abilities of a store, and is a function of a [Run]. Both
// are lines of tables. A cell exists if the store has the abilities that the fault needs.
// Texts, names and the order of writes come from the seed. The timing of threads and servers
// does not, so a seed repeats the writes but not every interleaving.
package faults
