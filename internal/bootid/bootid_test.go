package bootid_test

import (
	"testing"

	"github.com/keyplane/keyplane/internal/bootid"
)

func TestRead(t *testing.T) {
	if id := bootid.Read(); len(id) != 36 || id != bootid.Read() {
		t.Errorf("it is %q, and then %q", id, bootid.Read())
	}
}
