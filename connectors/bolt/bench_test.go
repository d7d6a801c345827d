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

// BenchmarkPutToTake is one key, in a file in memory: a disk would hide all the rest.
func BenchmarkPutToTake(b *testing.B) {
	db, _ := open(b, bolt.Config{})
	conformance.BenchmarkPut(b, db, benchRoot, func(p kvdbsync.Pair) {
		if err := db.Put(b.Context(), p.Key, p.Value); err != nil {
			b.Fatal(err)
		}
	})
}

// Benchmark10kPuts is as many transactions, one after the other.
func Benchmark10kPuts(b *testing.B) {
	db, _ := open(b, bolt.Config{})
	n := 0
	conformance.BenchmarkPuts(b, func() (kvdbsync.Connector, string) {
		n++
		return db, fmt.Sprintf("/vnf-agent/vpp%d/", n)
	}, func(prefix string, n int) {
		for i := range n {
			p := conformance.BenchPair(prefix, i)
			if err := db.Put(b.Context(), p.Key, p.Value); err != nil {
				b.Fatal(err)
			}
		}
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
