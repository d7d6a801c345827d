package vpp

import "google.golang.org/protobuf/proto"

// suspects are the values whose verbs were running when VPP died.
type suspects struct {
	life  int // of VPP; the first is 1
	byKey map[string]*suspect
}

// A suspect is a value during whose verb VPP died. It may be innocent: other verbs were
// running, too, so it is tried alone before it is quarantined.
type suspect struct {
	value  proto.Message
	deaths int // number of deaths of VPP while its verb was running
	put    int // the last life in which it was postponed
	last   int // the life that its verb ended
}

// mostDeaths is the number of deaths after which a value is quarantined. The first may be the
// fault of any verb that was running, and the second a chance: VPP may be killed for another
// reason just while the value is tried alone.
const mostDeaths = 3

// A permission says whether a verb of a value may run now.
type permission int

const (
	free        permission = iota
	putOff                 // after all other values
	alone                  // while no other verb runs
	quarantined            // not at all, unless a person asks for it
)

// permit returns whether the verb of a value may run, and the number of deaths that it caused. In each
// life of VPP a suspect is postponed the first time, when all values are restored. Retries
// and people ask again later.
func (s *suspects) permit(key string, value proto.Message) (is permission, deaths int) {
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

// tried records whether VPP died during the verb of a value. A value that ran alone
// without harm is not suspect any more.
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

// alive records that VPP did not die in this life but was only busy. It returns the keys
// that were suspected of its death.
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
