package testkit

import "testing"

func TestLoadOf(t *testing.T) {
	t.Parallel()
	if load, most, err := loadOf("10.68 12.29 10.59 6/189 29924\n", 2); load != 10.68 || most != 10 || err != nil {
		t.Errorf("load %v of at most %v, %v; want 10.68 of at most 10", load, most, err)
	}
	if _, _, err := loadOf("", 2); err == nil {
		t.Error("an empty file has a load")
	}
}
