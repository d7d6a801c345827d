package kind

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
)

// Check returns the mistake in a descriptor whose Prefix is the declared one. These mistakes are
// found at the start of a program and not when the first value arrives.
func (d *Descriptor) Check() error {
	verbs := &d.Verbs
	switch {
	case d.Name == "":
		return errors.New("name is required")
	case !d.Modelled && d.Prefix == "":
		return errors.New("a Model or a Prefix is required")
	case d.Modelled && d.Prefix != "":
		return errors.New("has both a Model and a Prefix; expected one of them")
	case d.Prefix != "" && !strings.HasSuffix(d.Prefix, "/"):
		return fmt.Errorf("prefix %q does not end with a slash", d.Prefix)
	case (verbs.Create == nil) != (verbs.Delete == nil):
		return errors.New("has only one of Create and Delete; expected both or none")
	case verbs.Create == nil && verbs.CreateAll != nil:
		return errors.New("has CreateAll, but no Create")
	case d.Retrieve == nil && d.RetrieveSome != nil:
		return errors.New("has RetrieveSome, but no Retrieve")
	}
	return nil
}

// Limit adds the limits of single fields to the validation. If both refuse a field, the error of
// the validation counts: it knows the other fields.
func (d *Descriptor) Limit(check func(proto.Message) error) {
	validate := d.Validate
	d.Validate = func(key string, v proto.Message) error {
		err, outside := validate(key, v), check(v)
		switch {
		case outside == nil:
			return err
		case err == nil:
			return outside
		}
		return models.Also(err, outside)
	}
}
