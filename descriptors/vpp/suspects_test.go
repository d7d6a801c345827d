package vpp

import (
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Each step is what is asked of the suspects, and what they say.
func TestSuspects(t *testing.T) {
	s := suspects{life: 1, byKey: map[string]*suspect{}}
	bad, better := wrapperspb.String("bad"), wrapperspb.String("better")
	expect := func(step string, value *wrapperspb.StringValue, want permission) {
		t.Helper()
		if got, _ := s.permit("key", value); got != want {
			t.Errorf("%s: %d, want %d", step, got, want)
		}
	}
	dies := func() { s.tried("key", bad, true); s.life++ }

	expect("nothing known", bad, free)
	dies()
	expect("the first of the next life", bad, putOff)
	expect("tried again", bad, alone)
	s.tried("key", bad, false)
	expect("it was innocent", bad, free)

	s.tried("key", bad, true)
	if cleared := s.alive(); len(cleared) != 1 {
		t.Errorf("cleared are %q", cleared)
	}
	s.life++
	expect("VPP was only busy", bad, free)

	for range mostDeaths - 1 {
		dies()
		expect("VPP may have been killed by somebody else", bad, putOff)
	}
	dies()
	expect("three times", bad, quarantined)
	expect("somebody asks for it", bad, alone)
	dies()
	expect("a fourth time", bad, quarantined)
	s.life++
	expect("VPP comes anew by itself", bad, quarantined)
	expect("changed", better, free)
	expect("and changed back", bad, free)
}
