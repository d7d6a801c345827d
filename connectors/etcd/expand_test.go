package etcd

import (
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
		emit := expanding([]string{"KEYPLANE_TEST_*", "OTHER"}, func(b kvdbsync.Batch) error { got = b; return nil })
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
