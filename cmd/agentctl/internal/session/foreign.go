package session

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// Registry is [Registry] for commands within WithAgent, which ask by HTTP. That also has the
// names of fields in files, which the descriptions of gRPC lack.
func (s *Session) Registry(ctx context.Context) (*models.Registry, error) {
	known, err := s.Models(ctx, ConfigClass)
	if err != nil {
		return nil, err
	}
	all := models.BuiltIn()
	for _, m := range known {
		if _, ok := all.ByName(m.Name); ok {
			continue
		}
		kind, err := s.MessageType(m.ProtoName)
		if err == nil {
			all, err = all.With(ModelOf(m, kind))
		}
		if err != nil {
			return nil, fmt.Errorf("model %s of the agent: %w", m.Name, err)
		}
	}
	return all, nil
}

// UseModels calls use with the built-in models. If that fails, perhaps only the agent has the
// model of a value: if an agent answers that has other models, use is called again with them too.
func (s *Session) UseModels(ctx context.Context, use func(*models.Registry) error) error {
	err := use(models.BuiltIn())
	if err == nil {
		return nil
	}
	end, unreachable := s.ReachStoreAgent(ctx)
	if unreachable != nil {
		return err
	}
	defer end()
	all, unknown := s.Registry(ctx)
	if unknown != nil || len(all.All()) == len(models.BuiltIn().All()) {
		return err
	}
	return use(all)
}

// ModelOf returns the built-in model that m describes, or one made of the description. kind is
// its message.
func ModelOf(m wire.Model, kind protoreflect.MessageType) *models.Model {
	if own, ok := models.BuiltIn().ByName(m.Name); ok {
		return own
	}
	// The prefix of keys is config/MODULE/VERSION/TYPE/, where slashes replace dots.
	d := models.Definition{NameTemplate: m.NameTemplate}
	_, d.Field, _ = strings.Cut(m.ConfigField, ".")
	part := &d.Module
	for element := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(m.KeyPrefix, m.Class), "/"), "/") {
		if part == &d.Module && version.MatchString(element) {
			d.Version, part = element, &d.Type
			continue
		}
		*part = strings.TrimPrefix(*part+"."+element, ".")
	}
	return models.DefineMessage(d, kind)
}

// version matches the element of keys that has the version of a module.
var version = regexp.MustCompile(`^v[0-9]`)
