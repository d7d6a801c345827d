// Hello-agent is an agent with a part of its own: it greets everybody whose name is a key below hello/ in etcd, and
// writes the greeting below greetings/. It does everything that the standard agent does, too. docs/extend.md goes
// through it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/kvdbsync"
)

func main() { agent.Main(options()) }

// options are those of the standard agent, and the greeter.
func options() agent.Options {
	return agent.Options{Name: "hello-agent", Northbounds: []agent.Addition{hello}, Folders: []string{"hello/", "greetings/"}}
}

// hello makes the greeter. It is called once, when all parts of the agent exist and none runs.
func hello(p agent.Parts) ([]agent.Task, error) {
	store, ok := p.Stores["etcd"].(kvdbsync.Writer)
	if !ok {
		return nil, errors.New("hello-agent keeps its keys in etcd; expected a file etcd.conf")
	}
	g := &greeter{root: "/vnf-agent/" + p.Label + "/", store: store}
	names := kvdbsync.NewSource(kvdbsync.Options{Name: "hello", Connector: p.Stores["etcd"], Root: g.root, Prefix: "hello/", Log: p.Log})
	p.ServeHTTP(agent.Path{Path: "/hello", About: "the number of greetings", Handler: g})
	run := func(ctx context.Context) error {
		p.Log.Info("the greeter begins")
		defer p.Log.Info("the greeter ends")
		return g.greet(ctx, names)
	}
	return []agent.Task{{Name: "names", Run: names.Run}, {Name: "greeter", Run: run}}, nil
}

// A greeter answers names with greetings.
type greeter struct {
	root  string // of the agent's keys
	store kvdbsync.Writer
	count atomic.Int64
}

// greet greets each name of the source, until ctx ends.
func (g *greeter) greet(ctx context.Context, names *kvdbsync.Source) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-names.Ready():
		}
		change, _ := names.Take()
		for _, e := range change.Events {
			name := strings.TrimPrefix(e.Key, "hello/")
			if e.Value == nil {
				continue // the key is gone
			}
			text, err := json.Marshal(map[string]string{"text": "Hello, " + name})
			if err == nil {
				err = g.store.Put(ctx, g.root+"greetings/"+name, text)
			}
			if err != nil && ctx.Err() == nil {
				return err // it ends the agent
			}
			g.count.Add(1)
		}
	}
}

// ServeHTTP implements http.Handler.
func (g *greeter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "{\"greetings\": %d}\n", g.count.Load())
}
