package scheduler_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// A model that is not built in is decoded and described like the others, if the scheduler
// knows it.
func TestModelsOfTheScheduler(t *testing.T) {
	defined := models.Define[*wrapperspb.StringValue](models.Definition{Module: "acme", Version: "v1", Type: "text", NameTemplate: "{{.Value}}"})
	described := scheduler.Descriptor[*wrapperspb.StringValue, struct{}]{Name: "acme-text", Model: defined}
	if _, err := scheduler.Register(scheduler.New(scheduler.Options{}), described); !errors.Is(err, models.ErrNoModel) ||
		!strings.Contains(err.Error(), `descriptor "acme-text": model acme.text: no such model; expected one of Options.Models`) {
		t.Errorf("without the model: %v", err)
	}

	all, err := models.BuiltIn().With(defined.Model)
	if err != nil {
		t.Fatal(err)
	}
	s := scheduler.New(scheduler.Options{Models: all})
	if _, err := scheduler.Register(s, described); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Decode("config/acme/v1/text/hello", []byte(`"hello"`)); err != nil || v.Key() != "config/acme/v1/text/hello" {
		t.Errorf("decoded %v, %v", v, err)
	}
	if s.Models() != all {
		t.Error("Models returns others")
	}
}
