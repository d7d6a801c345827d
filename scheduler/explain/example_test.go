package explain_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
)

type text = *wrapperspb.StringValue

// An explanation leads to causes that somebody can remove.
func ExampleKey() {
	s := scheduler.New(scheduler.Options{})
	for _, d := range []scheduler.Descriptor[text, struct{}]{
		{Name: "volume", Prefix: "volume/", Create: create, Delete: remove},
		{Name: "mount", Prefix: "mount/", Create: create, Delete: remove, Dependencies: needsVolume},
	} {
		if _, err := scheduler.Register(s, d); err != nil {
			panic(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	var txn scheduler.Txn
	for key, value := range map[string]string{"volume/v1": "10G", "mount/home": "v11"} {
		v, err := s.Value(key, wrapperspb.String(value))
		if err != nil {
			panic(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	if _, err := s.Commit(ctx, txn); err != nil {
		panic(err)
	}
	fmt.Print(explain.Key(s, "mount/home"))
	fmt.Println("root:", explain.Roots(s, []string{"mount/home"}, 1)["mount/home"][0].Key)
	stop()
	fmt.Println(<-ended)
	// Output:
	// mount/home is PENDING
	//   volume-exists: volume/v11, which nobody declares; the nearest that is declared: volume/v1
	// root: volume/v11
	// <nil>
}

func needsVolume(_ string, v text) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "volume-exists", Key: "volume/" + v.Value}}
}

func create(context.Context, string, text) (struct{}, error) { return struct{}{}, nil }

func remove(context.Context, string, text, struct{}) error { return nil }
