// Package controllerlog reads the log of the AWS Load Balancer Controller, releases v2.0.0 to v3.5.0: the calls that
// it makes on security groups and target groups, and what it says of its reconciles, its lease and its start.
//
// The controller logs JSON by zap. A call has one line before it is sent and one after it succeeded
// (pkg/networking/security_group_manager.go, pkg/targetgroupbinding/targets_manager.go); a call that failed has no
// second line, its error appears, if at all, in a line of the reconcile that made it. What such a line proves:
//
//   - "authorized", "revoked", "registered targets" end the call of the same process, group and kind.
//   - "Retrying ReconcileIngress without using cache" (since v2.12.0) follows a call that failed with one of three
//     codes, at once and in the same goroutine.
//   - An error text names the call (SDK v2) or at least a code that only some calls give (SDK v1).
//   - The next call on the same group proves that the one before is over: nobody else in the process touches the
//     group meanwhile. So does the next call of managed rules on any group, because one mutex per process covers
//     them all (pkg/networking/networking_manager.go). The rules of load balancers' own groups are outside of it.
package controllerlog
