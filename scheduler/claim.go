package scheduler

import "github.com/keyplane/keyplane/scheduler/internal/value"

// A Claim reserves a resource that only one value can have, such as a name in the kernel; see [Descriptor].
//
//	scheduler.Claim{
//		Resource: "host-name/tap0", // unique among all descriptors
//		Field:    "host_if_name",   // the path of the field that makes the claim,
//		Value:    "tap0",           // and its value, for the error of a value that loses
//		Want:     "a name that no other interface has",
//		Yields:   false, // true: values that yield share the resource, while no other one claims it
//	}
//
// The holder keeps the resource while it declares the claim, also while it is recreated or
// pending. If it becomes free, the value with the lowest key gets it. All other values
// with this claim are INVALID and not applied; their error names the holder. A value that does not get all its claims
// holds none. A value that vanished or could not be created has no precedence. Neither has
// any value after the system restarts.
type Claim = value.Claim
