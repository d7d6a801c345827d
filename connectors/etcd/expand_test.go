package etcd

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

func TestExpand(t *testing.T) {
	t.Setenv("KEYPLANE_TEST_ADDR", "10.0.0.1")
	t.Setenv("KEYPLANE_SECRET", "s3cret")
	t.Setenv("OTHER", "10.0.0.2")
	tests := map[string]string{
		`{"ip":"$KEYPLANE_TEST_ADDR/24"}`:     `{"ip":"10.0.0.1/24"}`,
		`{"ip":"${KEYPLANE_TEST_ADDR}1"}`:     `{"ip":"10.0.0.11"}`,
		`$KEYPLANE_TEST_UNSET ${also_unset}`:  `$KEYPLANE_TEST_UNSET ${also_unset}`,
		`$KEYPLANE_SECRET ${KEYPLANE_SECRET}`: `$KEYPLANE_SECRET ${KEYPLANE_SECRET}`,
		`$OTHER`:                              `10.0.0.2`,
		`$ $1 ${ ${} $$ 5$`:                   `$ $1 ${ ${} $$ 5$`,
		``:                                    ``,
	}
	for text, want := range tests {
		var got kvdbsync.Batch
		emit := expanding([]string{"KEYPLANE_TEST_*", "OTHER"}, kvdbsync.Bounds{}, func(b kvdbsync.Batch) error { got = b; return nil })
		if err := emit(kvdbsync.Batch{Events: []kvdbsync.Event{{Key: "a", Value: []byte(text)}, {Key: "$gone"}}}); err != nil {
			t.Fatal(err)
		}
		if v := got.Events[0].Value; string(v) != want || v == nil {
			t.Errorf("%s became %s, want %s", text, v, want)
		}
		if e := got.Events[1]; e.Value != nil || e.Key != "$gone" {
			t.Errorf("a deletion became %+v", e)
		}
	}
}

// TestExpandIsBounded: a value that names a long variable again and again does not take
// more memory than a value may have. Other values of the batch are not affected.
func TestExpandIsBounded(t *testing.T) {
	t.Setenv("A", strings.Repeat("a", 1000))
	var got []kvdbsync.Event
	emit := expanding([]string{"A"}, kvdbsync.Bounds{Value: 10_000}, func(b kvdbsync.Batch) error { got = b.Events; return nil })
	// Of the variables that come before the bound, each makes the value longer.
	many, fits := strings.Repeat("$A ", 3000), strings.Repeat("$A", 10)
	if err := emit(kvdbsync.Batch{Events: []kvdbsync.Event{{Key: "many", Value: []byte(many)}, {Key: "fits", Value: []byte(fits)}, {Key: "over", Value: []byte(fits + " b")}}}); err != nil {
		t.Fatal(err)
	}
	for _, e := range got {
		switch {
		case e.Key == "fits" && (e.Err != nil || len(e.Value) != 10_000):
			t.Errorf("%s: %d bytes, %v", e.Key, len(e.Value), e.Err)
		case e.Key != "fits" && (!errors.Is(e.Err, kvdbsync.ErrTooMuch) || e.Value != nil):
			t.Errorf("%s: %d bytes, %v; want %v", e.Key, len(e.Value), e.Err, kvdbsync.ErrTooMuch)
		}
	}
}
