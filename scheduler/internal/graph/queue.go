package graph

import "slices"

// A queue is first in, first out.
type queue struct {
	list []*Node
	head int
}

// len returns the number of nodes in the queue.
func (q *queue) len() int { return len(q.list) - q.head }

// clone copies the queue for the journal.
func (q *queue) clone() queue { return queue{slices.Clone(q.list), q.head} }

// push appends a node. The caller checks that it is not in a queue.
func (q *queue) push(n *Node) { q.list = append(q.list, n) }

// pop returns the first node; nil: the queue is empty. An emptied queue uses its memory
// again.
func (q *queue) pop() *Node {
	if q.len() == 0 {
		return nil
	}
	n := q.list[q.head]
	q.list[q.head] = nil
	if q.head++; q.head == len(q.list) {
		q.list, q.head = cleared(q.list), 0
	}
	return n
}

// cleared returns list without elements. It drops a large backing array.
func cleared(list []*Node) []*Node {
	const much = 1024
	if cap(list) > much {
		return nil
	}
	clear(list)
	return list[:0]
}
