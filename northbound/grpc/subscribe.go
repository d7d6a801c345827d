package grpc

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/budget"
	"github.com/keyplane/keyplane/proto/ligato/generic"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// Bounds of one message of a stream: most clients accept 4 MiB.
const (
	maxNotifications = 1000
	// maxMessage is the size of a message in bytes, unless a single value has more. gRPC encodes into buffers
	// of 32 KiB, and larger messages into those of 1 MiB, and a stream that nobody reads keeps one.
	maxMessage = 28 << 10
)

// Subscribe sends the states of values: first all that exist, then each change. A client that
// reads slowly gets the newest state of each value, and misses no value.
//
// With the metadata "resume" the client can go on after a broken connection. Each time when it
// has all states, it gets a notification whose item has the name "resume" and no model, and
// whose status has a token as its message. Another subscription with that token as "resume"
// begins with the values that have changed since, removed ones included. If the token is
// unknown, because the agent was restarted or too much was removed, it begins with all values.
// The header "resumed" tells both cases apart.
func (m *manager) Subscribe(req *generic.SubscribeRequest, stream generic.ManagerService_SubscribeServer) error {
	wants, err := m.selection(req.GetSubscriptions())
	if err != nil {
		return err
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	tokens := md.Get(metaResume)
	token := ""
	if len(tokens) > 0 {
		token = tokens[len(tokens)-1]
	}
	r, resumed := m.states.open(token, wants)
	defer r.close()
	if err := stream.SendHeader(metadata.Pairs("resumed", strconv.FormatBool(resumed))); err != nil {
		return err
	}
	for {
		if err := await(stream.Context(), m.ended, r.ready.C()); err != nil {
			return err
		}
		changes, token, err := r.take()
		if err != nil {
			return err
		}
		if err := m.sendAll(stream, changes); err != nil {
			return err
		}
		if len(tokens) == 0 {
			continue
		}
		if err := stream.Send(&generic.SubscribeResponse{Notifications: []*generic.Notification{resumeAt(token)}}); err != nil {
			return err
		}
	}
}

// selection returns which keys a subscription selects: those of ids, all of a model for an id
// without a name, or all keys without ids.
func (m *manager) selection(subscriptions []*generic.Subscription) (func(key string) bool, error) {
	if len(subscriptions) == 0 {
		return func(string) bool { return true }, nil
	}
	keys, whole := map[string]bool{}, map[string]bool{}
	var wrong mistakes
	for i, s := range subscriptions {
		id := s.GetId()
		model, ok := m.models().ByName(id.GetModel())
		if ok && id.GetName() == "" {
			whole[model.Name()] = true
			continue
		}
		key, err := m.keyOf(id)
		if err != nil {
			wrong.add(fmt.Sprintf("subscriptions[%d].id", i), err)
		}
		keys[key] = true
	}
	return func(key string) bool {
		if keys[key] {
			return true
		}
		model, _, ok := m.models().ByKey(key)
		return ok && whole[model.Name()]
	}, wrong.err()
}

// sendAll sends changes in messages of bounded size.
func (m *manager) sendAll(stream generic.ManagerService_SubscribeServer, changes []*change) error {
	out, size := &generic.SubscribeResponse{}, 0
	flush := func() error {
		if len(out.Notifications) == 0 {
			return nil
		}
		err := stream.Send(out)
		out, size = &generic.SubscribeResponse{}, 0
		return err
	}
	for _, c := range changes {
		if c.size() > budget.Small {
			if err := flush(); err != nil {
				return err
			}
			if err := m.sendLarge(stream, c); err != nil {
				return err
			}
			continue
		}
		n, err := m.notification(c)
		if err != nil {
			return m.failure(err)
		}
		more := proto.Size(n)
		if size+more > maxMessage || len(out.Notifications) == maxNotifications {
			if err := flush(); err != nil {
				return err
			}
		}
		out.Notifications = append(out.Notifications, n)
		size += more
	}
	return flush()
}

// sendLarge sends a change of a large value. Memory that it shares with others is taken before its value is
// copied, and until it is written.
func (m *manager) sendLarge(stream generic.ManagerService_SubscribeServer, ch *change) error {
	c := callOf(stream.Context())
	defer c.release()
	if err := c.hold(stream.Context(), 3*int64(ch.size())); err != nil {
		return m.failure(err)
	}
	n, err := m.notification(ch)
	if err != nil {
		return m.failure(err)
	}
	message := &generic.SubscribeResponse{Notifications: []*generic.Notification{n}}
	if err := stream.Send(message); err != nil {
		return err
	}
	if proto.Size(message) <= budget.Small { // most of the value were secrets
		return nil
	}
	return c.awaitWritten(stream.Context())
}

// notification is the item of a value, as declared or as found, and its state. A removed value
// has no data.
func (m *manager) notification(c *change) (*generic.Notification, error) {
	item, err := m.itemOf(c.status.Key, c.value())
	return &generic.Notification{Item: item, Status: statusOf(c.status)}, err
}

// value is the value as declared or as found; nil: it was removed.
func (c *change) value() proto.Message {
	if c.status.Desired != nil {
		return c.status.Desired
	}
	return c.status.Actual
}

// size is that of the value on the wire.
func (c *change) size() int { return proto.Size(c.value()) }

// resumeAt is the notification with a token.
func resumeAt(token string) *generic.Notification {
	return &generic.Notification{
		Item:   &generic.Item{Id: &generic.Item_ID{Name: metaResume}},
		Status: &generic.ItemStatus{Status: kvscheduler.ValueState_NONEXISTENT.String(), Message: token},
	}
}
