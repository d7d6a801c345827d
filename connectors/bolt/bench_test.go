package bolt_test

import (
	"fmt"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const benchRoot = "/vnf-agent/vpp1/"

func benchOf(b *testing.B, db *bolt.DB) conformance.Bench {
	put := func(p kvdbsync.Pair) error { return db.Put(b.Context(), p.Key, p.Value) }
	return conformance.Bench{Connector: db, Put: put, PutAll: func(prefix string, n int) {
		for i := range n {
			if err := put(conformance.BenchPair(prefix, i)); err != nil {
				b.Fatal(err)
			}
		}
	}}
}

// BenchmarkPutToTake is one key, in a file in memory: a disk would hide all the rest.
func BenchmarkPutToTake(b *testing.B) {
	db, _ := open(b, bolt.Config{})
	conformance.BenchmarkPut(b, benchOf(b, db), benchRoot)
}

// Benchmark10kPuts is as many transactions, one after the other.
func Benchmark10kPuts(b *testing.B) {
	db, _ := open(b, bolt.Config{})
	n := 0
	conformance.BenchmarkPuts(b, func() (conformance.Bench, string) {
		n++
		return benchOf(b, db), fmt.Sprintf("/vnf-agent/vpp%d/", n)
	})
}

// BenchmarkList100k is a cold start, beside a program that reads the file with the library.
func BenchmarkList100k(b *testing.B) {
	db, path := open(b, bolt.Config{})
	fill(b, db)
	conformance.BenchmarkList(b, db, benchRoot, func() []kvdbsync.Pair {
		if err := db.Close(); err != nil { // for one program only can have the file
			b.Fatal(err)
		}
		raw := openRaw(b, path)
		defer raw.Close()
		var pairs []kvdbsync.Pair
		err := raw.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("root")).ForEach(func(k, v []byte) error {
				pairs = append(pairs, kvdbsync.Pair{Key: string(k), Value: append([]byte{}, v...)})
				return nil
			})
		})
		if err != nil {
			b.Fatal(err)
		}
		return pairs
	})
}

func fill(b *testing.B, db *bolt.DB) {
	b.Helper()
	pairs := make([]kvdbsync.Pair, conformance.BenchKeys)
	for i := range pairs {
		pairs[i] = conformance.BenchPair(benchRoot, i)
	}
	if err := db.Apply(b.Context(), pairs); err != nil {
		b.Fatal(err)
	}
}
