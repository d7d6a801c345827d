// Package ipfix implements VPP's export of flows (IPFIX, RFC 7011): the exporter, which sends
// to a collector; the parameters of recording; and the recording on interfaces.
//
//	err := ipfix.Register(s, ipfix.Options{API: manager, Interfaces: links, ...})
//
// The exporter and the parameters are settings of VPP, which exist always. They count as
// existing while they differ from a VPP that exports nothing: the collector is not 0.0.0.0,
// something is recorded. VPP refuses new parameters while any interface is recorded. So the
// recording of an interface depends on the parameters, and a change of these is a deletion
// and a creation: the scheduler ends all recordings before it, and begins them again.
//
// VPP knows no owner of these settings. A setting that nobody declares is left alone, unless
// the agent remembers having made it.
//
//	file         | subject
//	ipfix.go     | descriptors
//	exporter.go  | the exporter
//	params.go    | the parameters of recording
//	feature.go   | the recording on an interface
//	flowprobe.go | requests to VPP's plugin, and the differences of VPP 22.02
//
// Tests run against a simulated VPP, which is itself tested against a real one.
package ipfix

import (
	"errors"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	Name        = "vpp-ipfix"
	ParamsName  = "vpp-flowprobe-params"
	FeatureName = "vpp-flowprobe-feature"
)

var (
	// ErrStateless reports an active timer that VPP can have only after a restart.
	ErrStateless = errors.New("active_timer must stay 0 until VPP is restarted")
	// ErrStateful reports an active timer of 0 that VPP can have only after a restart.
	ErrStateful = errors.New("active_timer must not be 0 until VPP is restarted")
)

// Options configure the descriptors. All fields are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Run identifies the run of VPP that is connected now, or was last. It is empty before the first connection.
	Run        func() string
	Connection string
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	tables tables
}

// Register adds the descriptors to s. The caller registers interfaces and VRF tables too.
func Register(s *scheduler.Scheduler, o Options) error {
	h := &handler{Options: o}
	registrar := s.OnConnection(o.Connection)
	_, err := scheduler.Register(registrar, h.exporterDescriptor())
	_, errParams := scheduler.Register(registrar, h.paramsDescriptor())
	_, errFeature := scheduler.Register(registrar, h.featureDescriptor())
	return errors.Join(err, errParams, errFeature)
}
