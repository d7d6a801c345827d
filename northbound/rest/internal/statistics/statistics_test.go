package statistics

import (
	"testing"

	"github.com/keyplane/keyplane/scheduler/stats"
)

// TestStatsTellWhatTheTransactionLogLacks: the counts of the scheduler are in the answer.
func TestStatsTellWhatTheTransactionLogLacks(t *testing.T) {
	got := Of(stats.Stats{LostTransactions: 3, LostPlans: 2}, nil, nil).TxnStats
	if got.Unwritten != 3 || got.LatePlans != 2 {
		t.Errorf("%d unwritten and %d late, want 3 and 2", got.Unwritten, got.LatePlans)
	}
}
