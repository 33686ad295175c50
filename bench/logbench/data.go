package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/tailwater/tailwater/eventlog"
)

// The records of PERFORMANCE: a key of 9 bytes out of 500,000, a value of 104.
const (
	keySize   = 9
	valueSize = 104
	keys      = 500_000
	values    = 4096 // distinct ones, row-like
)

// commitTime is that of all transactions, µs.
const commitTime = 1767323045678901

// rowsTx is how many records a transaction of the bulk workloads has.
const rowsTx = 1000

// source makes groups of records. One goroutine.
type source struct {
	rng    *rand.Rand
	values [][]byte
	txs    []eventlog.Tx
	group  []*eventlog.Tx
	keys   []byte
}

func newSource(seed uint64, topic eventlog.TopicID, records int) *source {
	s := &source{rng: rand.New(rand.NewPCG(seed, 1)), keys: make([]byte, records*keySize)}
	s.values = sampleValues()
	for at := 0; at < records; at += rowsTx {
		tx := eventlog.Tx{Kind: eventlog.TxSource, Source: "shop", Position: []byte("0/16B3748"), ID: "731", CommitTime: commitTime}
		for i := range min(rowsTx, records-at) {
			k := s.keys[(at+i)*keySize:][:keySize:keySize]
			k[0] = 'k'
			tx.Records = append(tx.Records, eventlog.Record{Topic: topic, Seq: uint32(i), Op: 2, Schema: 4, Key: k})
		}
		s.txs = append(s.txs, tx)
	}
	for i := range s.txs {
		s.group = append(s.group, &s.txs[i])
	}
	return s
}

// next fills the group anew.
func (s *source) next() []*eventlog.Tx {
	for i := range s.txs {
		for k := range s.txs[i].Records {
			r := &s.txs[i].Records[k]
			n := s.rng.Uint64()
			putDigits(r.Key[1:], uint32(n>>32)%keys)
			r.Value, r.Partition = s.values[n%values], 0
		}
	}
	return s.group
}

// putDigits fills b, of even length, two digits at a time: it takes cores from what is measured.
func putDigits(b []byte, n uint32) {
	for i := len(b) - 2; i >= 0; i -= 2 {
		p := pairs[n%100]
		b[i], b[i+1] = p[0], p[1]
		n /= 100
	}
}

// pairs are "00" to "99".
var pairs = func() (s [100][2]byte) {
	for n := range s {
		s[n] = [2]byte{'0' + byte(n/10), '0' + byte(n%10)}
	}
	return s
}()

// sampleValues are like rows of an order: numbers, a name, a state, a time.
func sampleValues() [][]byte {
	rng := rand.New(rand.NewPCG(7, 7))
	states := []string{"new", "paid", "packed", "shipped", "returned"}
	out := make([][]byte, values)
	for i := range out {
		v := fmt.Appendf(nil, "%08d|customer %06d|%s|2026-01-%02dT%02d:%02d:%02d.%06dZ|%d.%02d|",
			rng.IntN(1e8), rng.IntN(1e6), states[rng.IntN(len(states))], 1+rng.IntN(28), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e6), rng.IntN(1e4), rng.IntN(100))
		for len(v) < valueSize {
			v = append(v, "note for the warehouse: leave it at the door|"...)
		}
		out[i] = v[:valueSize:valueSize]
	}
	return out
}
