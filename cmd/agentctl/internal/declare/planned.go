package declare

import (
	"errors"
	"fmt"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/documents"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/saved"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// take makes a saved plan the change.
func (c *change) take(path string) error {
	p, err := saved.Read(path)
	if err != nil {
		return err
	}
	c.saved, c.source, c.text = &p, p.Source, []byte(p.Document)
	c.from = documents.Of(path, c.text)
	if p.Store {
		c.Store = p.Source
	}
	return nil
}

// errMoved refuses a saved plan.
var errMoved = errors.New("nothing was changed: the plan is not what the agent would do now, which is printed above: expected a new plan (agentctl plan -o)")

// unmoved refuses a saved plan if the agent plans other changes now, or is another one.
func (c *change) unmoved(now wire.Plan) error {
	if c.saved == nil {
		return nil
	}
	if label := c.AgentLabel(); c.saved.Label != "" && label != "" && label != c.saved.Label {
		return fmt.Errorf("nothing was changed: the plan is for the agent with the label %s, and this one has %s", show.Line(c.saved.Label), show.Line(label))
	}
	if !c.saved.Same(now.Operations) {
		return errMoved
	}
	return nil
}
