// Web-store is an agent with a kind of store of its own: a JSON object at a URL, with the values under their keys. It
// does everything that the standard agent does, too. docs/extend.md goes through it.
package main

import (
	"errors"
	"time"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/kvdbsync"
)

func main() { agent.Main(options()) }

// options are those of the standard agent, and the store. It is used if there is a file web.conf.
func options() agent.Options {
	return agent.Options{Name: "web-store", Stores: []agent.StoreKind{{
		Name: "web", Help: "a JSON object at a URL", Priority: 5,
		Open: func(o agent.StoreOptions) (kvdbsync.Connector, error) {
			c := config{Period: 5 * time.Second}
			if found, err := o.Load(&c); !found || err != nil {
				return nil, err
			}
			return &store{url: c.URL, period: c.Period, bounds: o.Bounds.WithDefaults()}, nil
		},
	}}}
}

// config is the content of web.conf.
type config struct {
	URL    string        `yaml:"url"`    // required
	Period time.Duration `yaml:"period"` // between two requests; defaults to 5 s
}

// Validate is called when the file was read.
func (c config) Validate() error {
	if c.URL == "" {
		return errors.New("url is missing; expected one such as http://10.0.0.1/network.json")
	}
	return nil
}
