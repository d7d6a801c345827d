package graph

import "slices"

// A queue is first in, first out.
type queue struct {
	list []*Node
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) clone() queue { return queue{slices.Clone(q.list), q.head} }

func (q *queue) push(n *Node) { q.list = append(q.list, n) }

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
