package vpp

import "google.golang.org/protobuf/proto"

// suspects are the values that were being worked at when VPP died.
type suspects struct {
	life  int // of VPP; begins with 1
	byKey map[string]*suspect
}

type suspect struct {
	value  proto.Message
	deaths int // of VPP, while its verb was under way
	put    int // the last life in which it was put off
	last   int // the life that its verb has ended
}

// mostDeaths of VPP are those that a value is allowed.
const mostDeaths = 2

// A verdict is what may be done with a value now.
type verdict int

const (
	free        verdict = iota
	putOff              // others first
	alone               // with nothing else beside it
	quarantined         // nothing, unless it is asked for again
)

// judge tells what may be done with a value, and how often VPP has died of it. In each
// life of VPP a suspect is turned away the first time, when all values are restored. Who
// asks again are retries and people.
func (s *suspects) judge(key string, value proto.Message) (is verdict, deaths int) {
	one := s.byKey[key]
	switch {
	case one == nil:
		return free, 0
	case !proto.Equal(one.value, value):
		delete(s.byKey, key)
		return free, 0
	case one.put == s.life:
		return alone, one.deaths
	}
	one.put = s.life
	if one.deaths >= mostDeaths {
		return quarantined, one.deaths
	}
	return putOff, one.deaths
}

// tried notes whether VPP died while the verb of a value was under way. One that did
// it no harm, alone, is no suspect any more.
func (s *suspects) tried(key string, value proto.Message, died bool) {
	if !died {
		delete(s.byKey, key)
		return
	}
	one := s.byKey[key]
	if one == nil {
		one = &suspect{}
		s.byKey[key] = one
	}
	one.value, one.put, one.last = value, 0, s.life
	one.deaths++
}

// alive notes that VPP has not died in this life, but was busy. It returns the keys whose
// values were suspected of it.
func (s *suspects) alive() (cleared []string) {
	for key, one := range s.byKey {
		if one.last != s.life {
			continue
		}
		if one.deaths--; one.deaths == 0 {
			delete(s.byKey, key)
		}
		one.last = 0
		cleared = append(cleared, key)
	}
	return cleared
}
