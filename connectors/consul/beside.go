package consul

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Beside implements kvdbsync.Browser. With a separator, Consul answers one name for each
// folder. Folders that contain a known one are asked about in turn.
func (c *Client) Beside(ctx context.Context, prefix string, known []string) ([]string, error) {
	names := map[string]bool{}
	asked := map[string]bool{} // each folder once, whatever the server answers
	for folders := []string{""}; len(folders) > 0; {
		below := folders[0]
		folders = folders[1:]
		keys, err := c.names(ctx, prefix+below)
		if err != nil {
			return nil, fmt.Errorf("looking for keys beside %s in consul: %w", prefix, err)
		}
		for _, key := range keys {
			name := strings.TrimPrefix("/"+key, prefix)
			inside := func(k string) bool { return k != name && strings.HasPrefix(k, name) }
			if strings.HasSuffix(name, "/") && slices.ContainsFunc(known, inside) {
				if !asked[name] {
					asked[name], folders = true, append(folders, name)
				}
				continue
			}
			if folder, unknown := kvdbsync.FolderOf(name, known); unknown && len(names) < mostNames {
				names[folder] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), kvdbsync.MostBeside)], nil
}

// mostNames bounds the memory of what a hostile server answers.
const mostNames = 1000

// names returns the keys and folders directly below a prefix, without a leading slash.
func (c *Client) names(ctx context.Context, prefix string) ([]string, error) {
	r, err := c.begun(ctx)
	if err != nil {
		return nil, err
	}
	defer r.end()
	keys, _, err := c.api.KV().Keys(storeKey(prefix), "/", r.read())
	return keys, r.explain(err)
}
