// Package model is the reference implementation of the protocol that spec.tla states: the controller
// of load balancers as it reconciles the rules of a security group, and every design compared with it.
//
// The protocol is written once. What a process decides (what to grant and revoke, in which order, when
// to describe again, what the cache keeps, when to skip) is in functions over sets of rules. System
// runs them one step at a time with every answer that the environment allows; its actions carry the
// names of spec.tla. Reconciler runs them live, against EC2.
//
// The package does no input or output of its own: it reaches AWS and Kubernetes through interfaces.
// Line numbers are those of the controller's source at tag v3.4.0.
package model
