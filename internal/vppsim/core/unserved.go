package core

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// Unserved is the return value of a request that a release has and that no plugin serves. VPP itself
// returns it for none, so that a client's log tells the one from the other.
const Unserved Errno = -9999

// addUnserved adds the messages of all imported bindings that the release has and that no plugin serves.
// Some clients look into the table first, and refuse to work with a VPP that lacks one of the messages that
// they may ever use.
func (t *table) addUnserved(o Options, differs map[string]bool) {
	all := map[string]api.Message{}
	for _, ofPackage := range api.GetRegisteredMessages() {
		for _, m := range ofPackage {
			all[m.GetMessageName()] = m
		}
	}
	listed := map[string]bool{vppwire.Name(&memclnt.SockclntCreate{}): true, vppwire.Name(&memclnt.SockclntCreateReply{}): true} // with fixed numbers
	for _, e := range t.entries {
		listed[e.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		if listed[vppwire.Name(m)] || differs[name] || slices.Contains(o.Without, pluginOf(m)) || slices.Contains(o.Lacks, name) {
			continue
		}
		id := t.add(m)
		if m.GetMessageType() == api.RequestMessage {
			t.byID[id] = &entry{refusing(m, all[replyTo(name)]), name}
		}
	}
}

// replyTo returns the name of the reply to a request. A dump has none: its details end with the answer
// to the next request.
func replyTo(request string) string {
	if strings.HasSuffix(request, "_dump") {
		return ""
	}
	return request + "_reply"
}

// refusing makes a message that is answered with Unserved, or not at all without a reply.
func refusing(request, reply api.Message) Message {
	refuse := func(c *Client, m []byte, retval int32) {
		if reply == nil {
			return
		}
		r, _ := reflect.TypeAssert[api.Message](reflect.New(reflect.TypeOf(reply).Elem()))
		if field := reflect.ValueOf(r).Elem().FieldByName("Retval"); field.IsValid() {
			field.SetInt(int64(retval))
		}
		c.answer(r, binary.BigEndian.Uint32(m[6:]))
	}
	return Message{request: request, refuse: refuse, serve: func(c *Client, m []byte) {
		c.server.o.Log.Warn("a request that is not simulated", "message", request.GetMessageName())
		refuse(c, m, int32(Unserved))
	}}
}
