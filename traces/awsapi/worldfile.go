package awsapi

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"linearize.example/traces"
)

// The world file, as docs/record.md describes it. Names in small letters are the file's own; those in capitals are the
// names that the AWS CLI prints, so that what it prints can be put in.
type worldFile struct {
	Account      string            `json:"account"`
	Region       string            `json:"region"`
	Zones        []string          `json:"zones"`
	VPCs         []vpcFile         `json:"vpcs"`
	Subnets      []subnetFile      `json:"subnets"`
	Groups       []groupFile       `json:"groups"`
	Interfaces   []interfaceFile   `json:"interfaces"`
	Instances    []instanceFile    `json:"instances"`
	TargetGroups []targetGroupFile `json:"targetGroups"`
}

type vpcFile struct {
	ID      string            `json:"id"`
	CIDR    string            `json:"cidr"`
	Default bool              `json:"default"`
	Tags    map[string]string `json:"tags"`
}

type subnetFile struct {
	ID   string            `json:"id"`
	VPC  string            `json:"vpc"`
	Zone string            `json:"zone"`
	CIDR string            `json:"cidr"`
	Tags map[string]string `json:"tags"`
}

type groupFile struct {
	ID                 string            `json:"id"`
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	VPC                string            `json:"vpc"`
	Tags               map[string]string `json:"tags"`
	IPPermissions      []permissionFile  `json:"ipPermissions"`
	SecurityGroupRules []ruleFile        `json:"securityGroupRules"`
}

// permissionFile is an IpPermission as `aws ec2 describe-security-groups` prints it.
type permissionFile struct {
	IpProtocol       string `json:"IpProtocol"`
	FromPort         *int64 `json:"FromPort"`
	ToPort           *int64 `json:"ToPort"`
	UserIdGroupPairs []struct {
		GroupId                string `json:"GroupId"`
		GroupName              string `json:"GroupName"`
		UserId                 string `json:"UserId"`
		Description            string `json:"Description"`
		VpcId                  string `json:"VpcId"`
		VpcPeeringConnectionId string `json:"VpcPeeringConnectionId"`
		PeeringStatus          string `json:"PeeringStatus"`
	} `json:"UserIdGroupPairs"`
	IpRanges []struct {
		CidrIp      string `json:"CidrIp"`
		Description string `json:"Description"`
	} `json:"IpRanges"`
	Ipv6Ranges []struct {
		CidrIpv6    string `json:"CidrIpv6"`
		Description string `json:"Description"`
	} `json:"Ipv6Ranges"`
	PrefixListIds []struct {
		PrefixListId string `json:"PrefixListId"`
		Description  string `json:"Description"`
	} `json:"PrefixListIds"`
}

// ruleFile is a rule as `aws ec2 describe-security-group-rules` prints it.
type ruleFile struct {
	SecurityGroupRuleId  string `json:"SecurityGroupRuleId"`
	SecurityGroupRuleArn string `json:"SecurityGroupRuleArn"`
	GroupId              string `json:"GroupId"`
	GroupOwnerId         string `json:"GroupOwnerId"`
	IsEgress             bool   `json:"IsEgress"`
	IpProtocol           string `json:"IpProtocol"`
	FromPort             *int64 `json:"FromPort"`
	ToPort               *int64 `json:"ToPort"`
	CidrIpv4             string `json:"CidrIpv4"`
	CidrIpv6             string `json:"CidrIpv6"`
	PrefixListId         string `json:"PrefixListId"`
	ReferencedGroupInfo  struct {
		GroupId                string `json:"GroupId"`
		UserId                 string `json:"UserId"`
		VpcId                  string `json:"VpcId"`
		VpcPeeringConnectionId string `json:"VpcPeeringConnectionId"`
		PeeringStatus          string `json:"PeeringStatus"`
	} `json:"ReferencedGroupInfo"`
	Description string `json:"Description"`
	Tags        []struct {
		Key   string `json:"Key"`
		Value string `json:"Value"`
	} `json:"Tags"`
}

type interfaceFile struct {
	ID            string            `json:"id"`
	Subnet        string            `json:"subnet"`
	Instance      string            `json:"instance"`
	Type          string            `json:"type"`
	Status        string            `json:"status"`
	Description   string            `json:"description"`
	Addresses     []string          `json:"addresses"`
	IPv6Addresses []string          `json:"ipv6Addresses"`
	Prefixes      []string          `json:"prefixes"`
	Groups        []string          `json:"groups"`
	Tags          map[string]string `json:"tags"`
}

type instanceFile struct {
	ID      string            `json:"id"`
	Subnet  string            `json:"subnet"`
	State   string            `json:"state"`
	Type    string            `json:"type"`
	DNSName string            `json:"dnsName"`
	Address string            `json:"address"`
	Groups  []string          `json:"groups"`
	Tags    map[string]string `json:"tags"`
}

type targetGroupFile struct {
	ARN           string            `json:"arn"`
	Name          string            `json:"name"`
	Protocol      string            `json:"protocol"`
	Port          int64             `json:"port"`
	TargetType    string            `json:"targetType"`
	VPC           string            `json:"vpc"`
	LoadBalancers *[]string         `json:"loadBalancers"`
	HealthyAfter  duration          `json:"healthyAfter"`
	Attributes    map[string]string `json:"attributes"`
	Tags          map[string]string `json:"tags"`
	Targets       []struct {
		ID   string `json:"id"`
		Port int64  `json:"port"`
	} `json:"targets"`
}

// duration is a time.Duration written as text: "1.5s".
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return fmt.Errorf("%q is no duration such as 1.5s: %w", text, err)
	}
	*d = duration(v)
	return nil
}

// LoadWorld reads a world from JSON or YAML in the form that docs/record.md describes. What the form does not know, values
// of another type, and references to what the file does not have are errors that name their place.
func LoadWorld(r io.Reader) (*World, error) {
	var f worldFile
	if err := decodeStrict(r, &f); err != nil {
		return nil, err
	}
	w := &World{
		account: firstText(f.Account, "123456789012"), region: firstText(f.Region, "us-east-1"), zones: f.Zones,
		tags: map[string]*lagged[string, string]{}, foreign: map[string]bool{}, now: traces.Beginning,
	}
	for _, load := range []func(*worldFile) error{w.loadNetworks, w.loadGroups, w.loadRules, w.loadInstances, w.loadTargetGroups} {
		if err := load(&f); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *World) loadTags(id string, tags map[string]string) {
	for k, v := range tags {
		w.setTag(id, tag{k, v}, traces.Beginning, traces.Beginning)
	}
}

func (w *World) loadNetworks(f *worldFile) error {
	if len(f.VPCs) == 0 {
		f.VPCs = []vpcFile{{ID: "vpc-00000000000000001"}}
	}
	for i, v := range f.VPCs {
		place := fmt.Sprintf("vpcs[%d]", i)
		if err := fresh(place, v.ID, "vpc-", w.vpc(v.ID) != nil); err != nil {
			return err
		}
		if d := w.defaultVPC(); d != nil && v.Default {
			return fmt.Errorf("%s.default: %s is the default VPC already, and a region has only one", place, d.id)
		}
		w.vpcs = append(w.vpcs, &vpc{v.ID, firstText(v.CIDR, "10.0.0.0/16"), v.Default})
		w.loadTags(v.ID, v.Tags)
	}
	if len(w.zones) == 0 {
		for _, s := range f.Subnets {
			if s.Zone != "" && !slices.Contains(w.zones, s.Zone) {
				w.zones = append(w.zones, s.Zone)
			}
		}
	}
	if len(w.zones) == 0 {
		w.zones = []string{w.region + "a", w.region + "b", w.region + "c"}
	}
	if len(f.Subnets) == 0 && len(f.Interfaces)+len(f.Instances) > 0 {
		f.Subnets = []subnetFile{{ID: "subnet-00000000000000001"}}
	}
	for i, s := range f.Subnets {
		place := fmt.Sprintf("subnets[%d]", i)
		if err := fresh(place, s.ID, "subnet-", w.subnet(s.ID) != nil); err != nil {
			return err
		}
		network, err := w.vpcOf(place, s.VPC)
		if err != nil {
			return err
		}
		zone := firstText(s.Zone, w.zones[0])
		if !slices.Contains(w.zones, zone) {
			return fmt.Errorf("%s.zone: %s is not among zones", place, zone)
		}
		w.subnets = append(w.subnets, &subnet{s.ID, network.id, zone, firstText(s.CIDR, network.cidr)})
		w.loadTags(s.ID, s.Tags)
	}
	return nil
}

// fresh checks the id of something that is new.
func fresh(place, id, prefix string, taken bool) error {
	switch {
	case id == "":
		return fmt.Errorf("%s has no id", place)
	case !wellFormed(id, prefix):
		return fmt.Errorf("%s.id: %q does not have the form %s…", place, id, prefix)
	case taken:
		return fmt.Errorf("%s.id: %s is given twice", place, id)
	}
	return nil
}

// vpcOf finds the VPC that a thing is in; it need not be said where there is only one.
func (w *World) vpcOf(place, id string) (*vpc, error) {
	if id == "" && len(w.vpcs) == 1 {
		return w.vpcs[0], nil
	}
	v := w.vpc(id)
	if v == nil {
		return nil, fmt.Errorf("%s.vpc: %q is not among vpcs", place, id)
	}
	return v, nil
}

func (w *World) subnetOf(place, id string) (*subnet, error) {
	if id == "" && len(w.subnets) == 1 {
		return w.subnets[0], nil
	}
	s := w.subnet(id)
	if s == nil {
		return nil, fmt.Errorf("%s.subnet: %q is not among subnets", place, id)
	}
	return s, nil
}

func (w *World) loadGroups(f *worldFile) error {
	for i, g := range f.Groups {
		place := fmt.Sprintf("groups[%d]", i)
		_, taken := w.groups.current(g.ID)
		if err := fresh(place, g.ID, "sg-", taken); err != nil {
			return err
		}
		network, err := w.vpcOf(place, g.VPC)
		if err != nil {
			return err
		}
		name := firstText(g.Name, g.ID)
		if w.groupByName(network.id, name) != nil {
			return fmt.Errorf("%s.name: another group of %s is called %s", place, network.id, name)
		}
		w.newGroup(g.ID, name, firstText(g.Description, name), network.id, traces.Beginning, traces.Beginning)
		w.loadTags(g.ID, g.Tags)
	}
	return nil
}

// loadRules comes behind loadGroups, because rules name groups.
func (w *World) loadRules(f *worldFile) error {
	for i, of := range f.Groups {
		g, _ := w.groups.current(of.ID)
		add := func(place string, a asked, egress bool, id string) (*rule, error) {
			// A group of another account or network has been checked by whoever let the rule in.
			if a.user != "" && a.user != w.account {
				w.foreign[a.source] = true
			}
			r, err := w.check(g, &a, egress)
			if err != nil {
				return nil, fmt.Errorf("%s: %s", place, strings.TrimSuffix(err.(*Refusal).Message, "."))
			}
			if _, there := g.rules.current(r.key); there {
				return nil, fmt.Errorf("%s: the rule %s is given twice", place, r.key.Rule)
			}
			if r.id = id; id == "" {
				r.id = w.nextID("sgr-")
			}
			w.serial++
			r.serial = w.serial
			g.rules.set(r.key, r, traces.Beginning, traces.Beginning)
			return r, nil
		}
		for j, p := range of.IPPermissions {
			place := fmt.Sprintf("groups[%d].ipPermissions[%d]", i, j)
			rules := p.rules()
			if len(rules) == 0 {
				return fmt.Errorf("%s names no source", place)
			}
			for _, a := range rules {
				if _, err := add(place, a, false, ""); err != nil {
					return err
				}
			}
		}
		for j, of := range of.SecurityGroupRules {
			place := fmt.Sprintf("groups[%d].securityGroupRules[%d]", i, j)
			if of.SecurityGroupRuleId != "" && (!wellFormed(of.SecurityGroupRuleId, "sgr-") || g.byID(of.SecurityGroupRuleId) != nil) {
				return fmt.Errorf("%s.SecurityGroupRuleId: %q is given twice or does not have the form sgr-…", place, of.SecurityGroupRuleId)
			}
			if of.GroupId != "" && of.GroupId != g.id {
				return fmt.Errorf("%s.GroupId: the rule belongs to another group, %s", place, of.GroupId)
			}
			r, err := add(place, of.rule(), of.IsEgress, of.SecurityGroupRuleId)
			if err != nil {
				return err
			}
			for _, t := range of.Tags {
				w.setTag(r.id, tag{t.Key, t.Value}, traces.Beginning, traces.Beginning)
			}
		}
	}
	return nil
}

// rules returns the rules that a permission stands for, one for each source.
func (p *permissionFile) rules() []asked {
	var all []asked
	add := func(kind source, from, description string) *asked {
		all = append(all, asked{protocol: p.IpProtocol, from: p.FromPort, to: p.ToPort, kind: kind, source: from, description: description})
		return &all[len(all)-1]
	}
	for _, s := range p.UserIdGroupPairs {
		a := add(sourceGroup, firstText(s.GroupId, s.GroupName), s.Description)
		a.named, a.user = s.GroupId == "", s.UserId
	}
	for _, s := range p.IpRanges {
		add(sourceIPv4, s.CidrIp, s.Description)
	}
	for _, s := range p.Ipv6Ranges {
		add(sourceIPv6, s.CidrIpv6, s.Description)
	}
	for _, s := range p.PrefixListIds {
		add(sourcePrefixList, s.PrefixListId, s.Description)
	}
	return all
}

func (f *ruleFile) rule() asked {
	a := asked{protocol: f.IpProtocol, from: f.FromPort, to: f.ToPort, description: f.Description}
	switch {
	case f.CidrIpv4 != "":
		a.kind, a.source = sourceIPv4, f.CidrIpv4
	case f.CidrIpv6 != "":
		a.kind, a.source = sourceIPv6, f.CidrIpv6
	case f.PrefixListId != "":
		a.kind, a.source = sourcePrefixList, f.PrefixListId
	default:
		a.kind, a.source, a.user = sourceGroup, f.ReferencedGroupInfo.GroupId, f.ReferencedGroupInfo.UserId
	}
	return a
}

func (w *World) loadInstances(f *worldFile) error {
	for i, of := range f.Instances {
		place := fmt.Sprintf("instances[%d]", i)
		taken := slices.ContainsFunc(w.instances, func(o *instance) bool { return o.id == of.ID })
		if err := fresh(place, of.ID, "i-", taken); err != nil {
			return err
		}
		s, err := w.subnetOf(place, of.Subnet)
		if err != nil {
			return err
		}
		state := firstText(of.State, "running")
		if _, known := instanceStates[state]; !known {
			return fmt.Errorf("%s.state: %q is no state of an instance", place, of.State)
		}
		if err := w.knownGroups(place, of.Groups); err != nil {
			return err
		}
		w.instances = append(w.instances, &instance{of.ID, s.id, state, firstText(of.Type, "m5.large"), of.DNSName, of.Address, of.Groups})
		w.loadTags(of.ID, of.Tags)
	}
	for i, of := range f.Interfaces {
		place := fmt.Sprintf("interfaces[%d]", i)
		taken := slices.ContainsFunc(w.interfaces, func(o *networkInterface) bool { return o.id == of.ID })
		if err := fresh(place, of.ID, "eni-", taken); err != nil {
			return err
		}
		s, err := w.subnetOf(place, of.Subnet)
		if err != nil {
			return err
		}
		if of.Instance != "" && !slices.ContainsFunc(w.instances, func(o *instance) bool { return o.id == of.Instance }) {
			return fmt.Errorf("%s.instance: %q is not among instances", place, of.Instance)
		}
		for _, address := range append(slices.Clip(of.Addresses), of.IPv6Addresses...) {
			if _, err := netip.ParseAddr(address); err != nil {
				return fmt.Errorf("%s: %q is no IP address", place, address)
			}
		}
		if err := w.knownGroups(place, of.Groups); err != nil {
			return err
		}
		w.interfaces = append(w.interfaces, &networkInterface{
			id: of.ID, subnet: s.id, instance: of.Instance, description: of.Description, kind: firstText(of.Type, "interface"),
			status: firstText(of.Status, "in-use"), addresses: of.Addresses, ipv6: of.IPv6Addresses, prefixes: of.Prefixes, groups: of.Groups,
		})
		w.loadTags(of.ID, of.Tags)
	}
	return nil
}

func (w *World) knownGroups(place string, ids []string) error {
	for i, id := range ids {
		if _, known := w.groups.current(id); !known {
			return fmt.Errorf("%s.groups[%d]: %q is not among groups", place, i, id)
		}
	}
	return nil
}

func (w *World) loadTargetGroups(f *worldFile) error {
	prefix := "arn:" + w.partition() + ":elasticloadbalancing:" + w.region + ":" + w.account + ":"
	for i, of := range f.TargetGroups {
		place := fmt.Sprintf("targetGroups[%d]", i)
		g := &targetGroup{
			arn: of.ARN, name: of.Name, protocol: firstText(of.Protocol, "HTTP"), kind: firstText(of.TargetType, "ip"), port: of.Port,
			attributes: map[string]string{
				deregistrationDelay: "300", "stickiness.enabled": "false",
				"load_balancing.algorithm.type": "round_robin", "slow_start.duration_seconds": "0",
			},
			healthyAfter: time.Duration(of.HealthyAfter),
		}
		if _, rest, ok := strings.Cut(of.ARN, ":targetgroup/"); ok && g.name == "" {
			g.name, _, _ = strings.Cut(rest, "/")
		}
		if g.name == "" {
			return fmt.Errorf("%s has neither name nor arn", place)
		}
		if g.arn == "" {
			w.serial++
			g.arn = fmt.Sprintf("%stargetgroup/%s/%016x", prefix, g.name, mix(uint64(w.serial)))
		}
		if !strings.HasPrefix(g.arn, "arn:") || !strings.Contains(g.arn, ":targetgroup/") {
			return fmt.Errorf("%s.arn: %q is not the ARN of a target group", place, g.arn)
		}
		if w.targetGroup(g.arn) != nil {
			return fmt.Errorf("%s.arn: %s is given twice", place, g.arn)
		}
		if !slices.Contains([]string{"ip", "instance", "alb", "lambda"}, g.kind) {
			return fmt.Errorf("%s.targetType: %q is none of ip, instance, alb, lambda", place, g.kind)
		}
		if g.port == 0 {
			g.port = 80
		}
		network, err := w.vpcOf(place, of.VPC)
		if err != nil {
			return err
		}
		g.vpc = network.id
		if g.balancers = []string{prefix + "loadbalancer/app/" + g.name + "/0000000000000001"}; of.LoadBalancers != nil {
			g.balancers = *of.LoadBalancers
		}
		for k, v := range of.Attributes {
			g.attributes[k] = v
		}
		for j, t := range of.Targets {
			if t.ID == "" || t.Port < 0 || t.Port > 65535 {
				return fmt.Errorf("%s.targets[%d] has no id, or a port outside of 1..65535", place, j)
			}
			port := t.Port
			if port == 0 {
				port = g.port
			}
			w.serial++
			g.targets.set(target{t.ID, port}, &registration{serial: w.serial, registered: traces.Beginning}, traces.Beginning, traces.Beginning)
		}
		w.targetGroups = append(w.targetGroups, g)
		w.loadTags(g.arn, of.Tags)
	}
	return nil
}
