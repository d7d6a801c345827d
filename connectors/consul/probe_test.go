package consul

import "testing"

// What a probe finds is compared with what the waiting question was told.
func TestJudge(t *testing.T) {
	t.Parallel()
	waits := func(after uint64) asked { return asked{number: 1, after: after} }
	waitsEmpty := func(after uint64) asked { return asked{number: 1, after: after, empty: true} }
	for name, test := range map[string]struct {
		q    asked
		now  indexes
		was  uint64
		want comparison
	}{
		"nobody wrote since the last probe":           {waits(7), indexes{table: 9}, 9, upToDate},
		"others wrote":                                {waits(7), indexes{table: 12, prefix: 7}, 9, upToDate},
		"the prefix was written":                      {waits(7), indexes{table: 12, prefix: 11}, 9, behind},
		"the prefix was written, at the first probe":  {waits(7), indexes{table: 12, prefix: 11}, 0, behind},
		"the last key was deleted":                    {waits(7), indexes{table: 12, prefix: 12, empty: true}, 9, behind},
		"an empty prefix has the index of all keys":   {waitsEmpty(7), indexes{table: 12, prefix: 12, empty: true}, 9, upToDate},
		"the first key of an empty prefix":            {waitsEmpty(7), indexes{table: 12, prefix: 12}, 9, behind},
		"the table is before the question":            {waits(7), indexes{table: 5, prefix: 4}, 9, wentAway},
		"the table is before the last probe":          {waits(7), indexes{table: 8, prefix: 7}, 9, wentAway},
		"an empty prefix, the table is before":        {waitsEmpty(7), indexes{table: 5, prefix: 5, empty: true}, 9, wentAway},
		"consul has forgotten the latest deletion":    {waits(7), indexes{table: 12, prefix: 6}, 9, wentAway},
		"nothing is under the prefix, and was before": {waitsEmpty(7), indexes{table: 7, prefix: 7, empty: true}, 0, upToDate},
	} {
		if got := compare(test.q, test.now, test.was); got != test.want {
			t.Errorf("%s: result %d, want %d", name, got, test.want)
		}
	}
}

// A restored snapshot withdraws one question. The probes after it find nothing wrong with the next one,
// although the store stays below the index that it had before.
func TestProbesAfterARestore(t *testing.T) {
	t.Parallel()
	var p prober
	steps := []struct {
		q    asked
		now  indexes
		want comparison
	}{
		{asked{number: 1, after: 70}, indexes{table: 90, prefix: 70}, upToDate},
		{asked{number: 1, after: 70}, indexes{table: 50, prefix: 40}, wentAway},
		{asked{number: 2, after: 40}, indexes{table: 51, prefix: 40}, upToDate},
		{asked{number: 2, after: 40}, indexes{table: 52, prefix: 40}, upToDate},
		{asked{number: 2, after: 40}, indexes{table: 30, prefix: 30}, wentAway},
	}
	for i, step := range steps {
		if got := p.judge(step.q, step.now); got != step.want {
			t.Errorf("probe %d: result %d, want %d", i+1, got, step.want)
		}
	}
}
