package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// The owners of elements take turns; the elements of each come in their order.
func TestOwnersTakeTurns(t *testing.T) {
	var q queue.Fair[string]
	for i := range 40 {
		q.Push(1, fmt.Sprintf("a%d", i))
	}
	q.Push(2, "b0")
	q.Push(3, "c0")
	q.Push(2, "b1")
	if all := slices.Collect(q.All); len(all) != 43 || q.Len() != 43 {
		t.Errorf("%d elements, %d in all; want 43", q.Len(), len(all))
	}
	var order, of []string
	for q.Len() > 0 {
		owner, e := q.Pop()
		order, of = append(order, e), append(of, fmt.Sprint(owner))
	}
	if at := slices.Index(order, "b1"); at > 20 || order[at-1] != "b0" {
		t.Errorf("b0 and b1 come after %d others: %v", at-1, order)
	}
	var as []string
	for _, e := range order {
		if strings.HasPrefix(e, "a") {
			as = append(as, e)
		}
	}
	if len(as) != 40 || as[0] != "a0" || as[39] != "a39" || !slices.Contains(of, "3") {
		t.Errorf("the elements of one owner come as %v", as)
	}
	if owner, e := q.Pop(); owner != 0 || e != "" {
		t.Errorf("an empty queue gives %q of %d", e, owner)
	}
	q.Push(4, "d")
	if owner, e := q.Pop(); owner != 4 || e != "d" {
		t.Errorf("after it was empty: %q of %d", e, owner)
	}
}
