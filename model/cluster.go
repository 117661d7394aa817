package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Binding is a TargetGroupBinding with networking, as far as its reconcile depends on it.
type Binding struct {
	Name      string     // namespace/name
	Spec      string     // any text that changes when the specification changes
	Sources   []Source   // who may reach the endpoints
	Endpoints []Endpoint // the live pods or nodes behind it
}

// Source is one peer of a binding: a security group or an address range.
type Source struct {
	Protocol string // tcp or udp
	Port     int32  // 0: the port of each endpoint
	GroupID  string
	CIDR     string // IPv4
	CIDRv6   string
}

// Endpoint is one pod or node that serves a binding.
type Endpoint struct {
	Address string
	Port    int32
	Created time.Time // when the pod was created: a pod that returns on the same address is another one
	Groups  []string  // security groups of its network interface
}

// Target is a registered endpoint.
type Target struct {
	Address string
	Port    int32
}

// Cluster is what a reconcile needs of Kubernetes.
type Cluster interface {
	// Bindings lists the names of all bindings with networking.
	Bindings(ctx context.Context) ([]string, error)
	// Binding returns one binding with its endpoints of now.
	Binding(ctx context.Context, name string) (Binding, error)
	// Checkpoint returns the binding's stored checkpoint, empty when there is none.
	Checkpoint(ctx context.Context, name string) (string, error)
	// SaveCheckpoint stores a binding's checkpoint.
	SaveCheckpoint(ctx context.Context, name, checkpoint string) error
}

// TargetGroups is what a reconcile needs of the load balancer.
type TargetGroups interface {
	// Targets lists the targets of a binding's group that are not draining.
	Targets(ctx context.Context, binding string) ([]Target, error)
	Register(ctx context.Context, binding string, targets []Target) error
	Deregister(ctx context.Context, binding string, targets []Target) error
}

// checkpoint condenses the sorted endpoints and the specification of a binding. Nothing of AWS's
// state goes in (targetgroupbinding/utils.go; the slash keeps it from ever being empty).
func (b Binding) checkpoint() string {
	endpoints := slices.Clone(b.Endpoints)
	slices.SortFunc(endpoints, func(x, y Endpoint) int {
		return cmp.Or(cmp.Compare(x.Address, y.Address), cmp.Compare(x.Port, y.Port), x.Created.Compare(y.Created))
	})
	h := sha256.New()
	for _, e := range endpoints {
		fmt.Fprintf(h, "%s:%d:%d\n", e.Address, e.Port, e.Created.UnixNano())
	}
	spec := sha256.Sum256([]byte(b.Spec))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)) + "/" + base64.RawURLEncoding.EncodeToString(spec[:])
}

// permissions are the rules that a binding wants on the group of the given endpoints
// (networking_manager.go:421, 459).
func (b Binding) permissions(endpoints []Endpoint) Permissions {
	var listed []types.IpPermission
	for _, s := range b.Sources {
		ports := []int32{s.Port}
		if s.Port == 0 {
			ports = nil
			for _, e := range endpoints {
				ports = append(ports, e.Port)
			}
		}
		for _, port := range ports {
			listed = append(listed, s.permission(port))
		}
	}
	return NewPermissions(listed)
}

func (s Source) permission(port int32) types.IpPermission {
	description := ManagedDescription
	p := types.IpPermission{IpProtocol: &s.Protocol, FromPort: &port, ToPort: &port}
	switch {
	case s.GroupID != "":
		p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupId: &s.GroupID, Description: &description}}
	case s.CIDRv6 != "":
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: &s.CIDRv6, Description: &description}}
	default:
		p.IpRanges = []types.IpRange{{CidrIp: &s.CIDR, Description: &description}}
	}
	return p
}

// changes compares the endpoints with what is registered: the targets to remove and those to add.
func (b Binding) changes(registered []Target) (gone, fresh []Target) {
	var live []Target
	for _, e := range b.Endpoints {
		live = append(live, Target{e.Address, e.Port})
	}
	for _, t := range registered {
		if !slices.Contains(live, t) {
			gone = append(gone, t)
		}
	}
	for _, t := range live {
		if !slices.Contains(registered, t) {
			fresh = append(fresh, t)
		}
	}
	return gone, fresh
}
