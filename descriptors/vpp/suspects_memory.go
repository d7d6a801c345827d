package vpp

import (
	"encoding/json"
	"maps"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// A record is the saved form of a suspect, in JSON.
type record struct {
	Deaths int    `json:"deaths"`
	Value  []byte `json:"value"` // a google.protobuf.Any
}

// recall loads the suspects of earlier runs of the agent.
func (g *guard) recall() {
	if g.memory == nil {
		return
	}
	for key, data := range g.memory.Load() {
		one, err := unpack(data)
		if err != nil {
			g.log.Warn("a saved suspect of a crash of VPP cannot be read; it is ignored", "key", key, "err", err)
			continue
		}
		g.suspects.byKey[key] = one
	}
}

// remember saves the state of a key. The caller holds mu.
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
		g.log.Error("a suspect of a crash of VPP cannot be saved", "key", key, "err", err)
	}
}

// pack returns the suspect as it is saved. The value is an Any, so that its type is known
// when it is read.
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

// unpack is the inverse of pack.
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
