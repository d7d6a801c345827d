package summary_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/summary"
)

func full() summary.Summary {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return summary.Summary{
		Label: "vpp1", Version: "v1.2.0", Started: at, Time: at.Add(time.Minute), Period: 60, Ended: true,
		States: map[string]int{"CONFIGURED": 2, "PENDING": 1}, Oldest: &summary.Waiting{Key: "config/a", Since: at},
	}
}

func TestTextAndBack(t *testing.T) {
	got, err := summary.Parse(summary.Key("vpp1"), full().Text())
	if err != nil || !reflect.DeepEqual(got, full()) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestForeignTexts(t *testing.T) {
	for key, text := range map[string]string{
		"vpp1": `nonsense`, "vpp2": string(full().Text()), "": `{}`, "a": `{"label":"a","states":{"PENDING":-1}}`,
	} {
		if got, err := summary.Parse(summary.Key(key), []byte(text)); !errors.Is(err, summary.ErrForeign) {
			t.Errorf("%s of %s is %+v, %v", text, key, got, err)
		}
	}
}

func TestLostAfterThreePeriods(t *testing.T) {
	s := full()
	for _, c := range []struct {
		ended bool
		after time.Duration
		want  bool
	}{{false, 3 * time.Minute, false}, {false, 3*time.Minute + 1, true}, {true, time.Hour, false}} {
		s.Ended = c.ended
		if got := s.Lost(s.Time.Add(c.after)); got != c.want {
			t.Errorf("ended %v, after %v: lost is %v", c.ended, c.after, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/vnf-agent-fleet/vpp1", full().Text())
	f.Add("x", []byte(`{"label":"x"}`))
	f.Fuzz(func(t *testing.T, key string, text []byte) {
		s, err := summary.Parse(key, text)
		if err != nil {
			return
		}
		again, err := summary.Parse(key, s.Text())
		if err != nil || !again.Time.Equal(s.Time) || len(again.States) != len(s.States) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}
