package inspect_test

import (
	"context"
	"reflect"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// The dependencies of a message are those that its descriptor has declared, with all fields.
func TestDependencies(t *testing.T) {
	type text = *wrapperspb.StringValue
	want := []scheduler.Dependency{
		{Label: "one", Key: "thing/a"},
		{Label: "any", Keys: []string{"thing/b", "thing/c"}},
		{Label: "some", Prefixes: []string{"thing/"}, Remedy: "or declare a thing"},
	}
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[text, struct{}]{
		Name: "item", Prefix: "item/",
		Dependencies: func(string, text) []scheduler.Dependency { return want },
		Create:       func(context.Context, string, text) (struct{}, error) { return struct{}{}, nil },
		Delete:       func(context.Context, string, text, struct{}) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := inspect.Message(s, "item/a", wrapperspb.String("a")).Dependencies; !reflect.DeepEqual(got, want) {
		t.Errorf("the dependencies are %+v; want %+v", got, want)
	}
}
