package grpc

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/keyplane/keyplane/proto/ligato/configurator"
	"github.com/keyplane/keyplane/proto/ligato/vpp"
)

// poller is ligato.configurator.StatsPollerService.
type poller struct {
	configurator.UnimplementedStatsPollerServiceServer
	*service
}

// PollStats sends the counters of each interface, in one message for each: once without a
// period, else num_polls times, or until the client ends the call. Polls are numbered from 1; a
// single one has the number 0.
func (p *poller) PollStats(req *configurator.PollStatsRequest, stream configurator.StatsPollerService_PollStatsServer) error {
	period, polls := time.Duration(req.GetPeriodSec())*time.Second, req.GetNumPolls()
	switch {
	case period == 0 && polls > 1:
		return status.Errorf(codes.InvalidArgument, "num_polls is %d, but period_sec is 0; expected a period, or one poll", polls)
	case p.Counters == nil:
		return status.Error(codes.Unavailable, "this agent reads no counters of VPP")
	case period == 0:
		return p.poll(stream, 0)
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for seq := uint32(1); ; seq++ {
		if err := p.poll(stream, seq); err != nil || seq == polls {
			return err
		}
		if err := await(stream.Context(), p.ended, ticker.C); err != nil {
			return err
		}
	}
}

// poll sends the present counters.
func (p *poller) poll(stream configurator.StatsPollerService_PollStatsServer, seq uint32) error {
	all, err := p.Counters(stream.Context())
	if err != nil {
		return status.Errorf(codes.Unavailable, "counters of VPP: %v", err)
	}
	for _, one := range all {
		if err := stream.Send(&configurator.PollStatsResponse{
			PollSeq: seq,
			Stats:   &configurator.Stats{Stats: &configurator.Stats_VppStats{VppStats: &vpp.Stats{Interface: one}}},
		}); err != nil {
			return err
		}
	}
	return nil
}
