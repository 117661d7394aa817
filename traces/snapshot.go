package traces

// Snapshot is what one group's rules were at one time, as `aws ec2 describe-security-group-rules` or
// `describe-security-groups` prints them.
type Snapshot struct {
	Group string
	// Rules are the ingress rules; ids are empty where the source (describe-security-groups) has none.
	Rules []IdentifiedPermission
}

// Binding is one TargetGroupBinding, as `kubectl get targetgroupbindings -A -o json` prints it.
type Binding struct {
	// Name is "namespace/name".
	Name string
	// TargetGroup is spec.targetGroupARN.
	TargetGroup string
	// TargetType is "ip" or "instance".
	TargetType string
	// Needs are the ports that spec.networking.ingress asks to be open. A binding without spec.networking needs
	// nothing: the controller does not touch rules for it.
	Needs []Need
	// Created and Deleted bound the time in which the binding was there: Beginning where it has no
	// creationTimestamp, Forever where it has no deletionTimestamp.
	Created, Deleted Instant
	// Checkpoint is the annotation elbv2.k8s.aws/checkpoint.
	Checkpoint string
}

// Need is one port that a binding asks to be open, from one peer.
type Need struct {
	Protocol string
	// Port is the number, or -1 for all ports, or 0 where PortName names it and nothing resolves the name.
	Port     int32
	PortName string
	// Source is the peer: a group id or a CIDR.
	Source string
}
