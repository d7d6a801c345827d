package vpp

import (
	"encoding/json"
	"maps"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// A record is a suspect as it is remembered, in JSON.
type record struct {
	Deaths int    `json:"deaths"`
	Value  []byte `json:"value"` // a google.protobuf.Any
}

// recall takes up the suspects of earlier runs of the agent.
func (g *guard) recall() {
	if g.memory == nil {
		return
	}
	for key, data := range g.memory.Load() {
		one, err := unpack(data)
		if err != nil {
			g.log.Warn("what VPP died of cannot be read, and is forgotten", "key", key, "err", err)
			continue
		}
		g.suspects.byKey[key] = one
	}
}

// remember writes down what is known of a key. It is called with mu held.
func (g *guard) remember(key string) {
	if g.memory == nil {
		return
	}
	var data []byte
	var err error
	if one := g.suspects.byKey[key]; one != nil {
		data, err = one.pack()
	}
	if err == nil {
		err = g.memory.Save(maps.All(map[string][]byte{key: data}))
	}
	if err != nil {
		g.log.Error("what VPP died of is not remembered", "key", key, "err", err)
	}
}

func (s *suspect) pack() ([]byte, error) {
	a, err := anypb.New(s.value)
	if err != nil {
		return nil, err
	}
	value, err := proto.Marshal(a)
	if err != nil {
		return nil, err
	}
	return json.Marshal(record{s.deaths, value})
}

func unpack(data []byte) (*suspect, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	var a anypb.Any
	if err := proto.Unmarshal(r.Value, &a); err != nil {
		return nil, err
	}
	value, err := a.UnmarshalNew()
	return &suspect{value: value, deaths: r.Deaths}, err
}
