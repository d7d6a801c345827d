package siege

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// A source is where the referee declares good values, and where no attacker writes.
type source interface {
	// put declares a value of a key, which begins with "config/"; an empty text removes it.
	put(ctx context.Context, key, text string) error
}

// source is where these rules have good values declared.
func (r rules) source() (source, error) {
	if r.Endpoint == "" {
		return &fileSource{r.File, map[string]json.RawMessage{}}, nil
	}
	return newEtcdSource(r)
}

// etcdSource is an etcd of the referee's own.
type etcdSource struct {
	root   string
	client *clientv3.Client
}

func newEtcdSource(r rules) (*etcdSource, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{r.Endpoint}, Logger: zap.NewNop()})
	return &etcdSource{r.Root, client}, err
}

func (s *etcdSource) put(ctx context.Context, key, text string) error {
	var err error
	if text == "" {
		_, err = s.client.Delete(ctx, s.root+key)
	} else {
		_, err = s.client.Put(ctx, s.root+key, text)
	}
	return err
}

// fileSource is one file, which is replaced with each change. One goroutine uses it.
type fileSource struct {
	path   string
	values map[string]json.RawMessage // by key
}

func (s *fileSource) put(_ context.Context, key, text string) error {
	if s.values[key] = json.RawMessage(text); text == "" {
		delete(s.values, key)
	}
	return replaceFile(s.path, documentOf(s.values))
}

// documentOf is a file in the key/value form.
func documentOf(values map[string]json.RawMessage) []byte {
	type item struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	all := struct {
		Data []item `json:"data"`
	}{[]item{}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all.Data = append(all.Data, item{key, values[key]})
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // the values are JSON that this package has made
	}
	return append(text, '\n')
}

// replaceFile gives a file new content at once, so that nobody reads half of it.
func replaceFile(path string, content []byte) error {
	beside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(beside, content, 0o600); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

// rootOf is the place of a label in a store.
func rootOf(label string) string { return "/vnf-agent/" + label + "/" }
