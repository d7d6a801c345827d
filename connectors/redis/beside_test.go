package redis_test

import (
	"fmt"
	"strings"
	"testing"
)

// An agent looks once for each listing. A connection that stays open would count for the server's
// maxclients, once for each agent.
func TestBesideLeavesNoConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	if _, err := s.connector().Beside(t.Context(), root, nil); err != nil {
		t.Fatal(err)
	}
	retry(t, func() error {
		if n := strings.Count(s.do("CLIENT", "LIST").(string), "\n"); n != 1 {
			return fmt.Errorf("%d connections; want only that of this question", n)
		}
		return nil
	})
}
