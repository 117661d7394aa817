// Package awsapi speaks the EC2 and ELBv2 Query APIs, as far as a load balancer controller uses them: it reads a call as
// it is on the wire, turns calls and answers into operations of a history, and holds a world of security groups and
// targets that answers calls as AWS does, with faults.
//
// Names, parameters and answers are those of the API references (EC2 2016-11-15, Elastic Load Balancing 2015-12-01).
package awsapi
