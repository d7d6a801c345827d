package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/kvdbsync"
)

// besidePages is the number of pages of names that Beside reads from each master. Redis has no
// order of keys, so it has to scan; in a larger database it may miss a folder.
const besidePages = 128

// Beside implements kvdbsync.Browser with a client of its own. It is called once for each listing,
// and the connections of a client stay open for as long as nobody uses them.
func (c *Connector) Beside(ctx context.Context, prefix string, known []string) (names []string, err error) {
	client, err := Dial(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.beside(ctx, prefix, known)
}

// beside scans all masters for names.
func (c *Client) beside(ctx context.Context, prefix string, known []string) ([]string, error) {
	l := outside{prefix: prefix, known: known, names: map[string]bool{}}
	err := c.each(ctx, l.scan)
	if err := c.noted(ctx, err); err != nil {
		return nil, fmt.Errorf("looking for keys beside %s in redis: %w", prefix, err)
	}
	sorted := slices.Sorted(maps.Keys(l.names))
	return sorted[:min(len(sorted), kvdbsync.MostBeside)], nil
}

// outside collects the names from several masters concurrently.
type outside struct {
	prefix string
	known  []string
	mu     sync.Mutex // guards names
	names  map[string]bool
}

// scan reads the names of one master, until its last page or besidePages.
func (o *outside) scan(ctx context.Context, client *goredis.Client) error {
	cursor := uint64(0)
	for range besidePages {
		keys, next, err := client.Scan(ctx, cursor, escape(o.prefix)+"*", pageSize).Result()
		if err != nil {
			return err
		}
		o.add(keys)
		if next == 0 {
			break
		}
		cursor = next
	}
	return nil
}

// add notes the folders of some keys.
func (o *outside) add(keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		rest, below := strings.CutPrefix(key, o.prefix)
		if !below { // the name was too long to be read
			continue
		}
		if name, unknown := kvdbsync.FolderOf(rest, o.known); unknown && len(o.names) < mostNames {
			o.names[name] = true
		}
	}
}

// mostNames bounds the memory of a scan of a database with many single keys.
const mostNames = 1000
