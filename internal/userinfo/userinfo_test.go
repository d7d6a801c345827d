package userinfo

import "testing"

func TestHidden(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8500": "127.0.0.1:8500", "http://host:8500": "http://host:8500", "/run/a@b.sock": "/run/a@b.sock", "unix://a@b": "unix://a@b",
		"http://ann:pw@host:8500": "http://(secret)@host:8500", "ann:p@w/x@host:6379": "(secret)@host:6379", "htp://:pw@h": "htp://(secret)@h",
	} {
		if got := Hidden(address); got != want || In(address) != (got != address) {
			t.Errorf("%s: %s, %v; expected %s", address, got, In(address), want)
		}
	}
}
