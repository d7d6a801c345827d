package etcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A cursor is the position of a listing in a range of keys. For each page etcd counts all keys of the requested
// range, so a million keys in 60 pages would be counted thirty times. The cursor therefore divides a range of
// many pages: its next part are the keys that begin with what all keys of the last page begin with.
type cursor struct {
	key  string   // of the next page
	ends []string // of the range and its parts, the innermost last; none: the listing is complete
}

// noEnd is the end of a range that goes to the last key.
const noEnd = "\x00"

// manyPages is the number of pages from which on a range is divided.
const manyPages = 4

func newCursor(key, end string) *cursor { return &cursor{key, []string{end}} }

// end is the end of the range of the next page.
func (c *cursor) end() string { return c.ends[len(c.ends)-1] }

// pass moves on behind a page, and reports whether it was the last one. size is the number of pairs on the
// next page.
func (c *cursor) pass(page *clientv3.GetResponse, size int64) (last bool) {
	n := len(page.Kvs)
	if !page.More {
		c.key, c.ends = c.end(), c.ends[:len(c.ends)-1]
		return len(c.ends) == 0
	}
	c.key = string(page.Kvs[n-1].Key) + "\x00"
	if n > 1 && page.Count-int64(n) > manyPages*size {
		end := clientv3.GetPrefixRangeEnd(common(page.Kvs[0].Key, page.Kvs[n-1].Key))
		if end != noEnd && (c.end() == noEnd || end < c.end()) {
			c.ends = append(c.ends, end)
		}
	}
	return false
}

// common returns the longest text with which both keys begin.
func common(a, b []byte) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return string(a[:n])
}
