package awsapi

import (
	"fmt"
	"slices"
	"strings"
)

// networkActions describe what the world file says of networks and instances. Nothing changes them but tags.
var networkActions = map[string]action{
	"DescribeVpcs":    {params: "VpcId Filter MaxResults NextToken", do: (*request).listVPCs},
	"DescribeSubnets": {params: "SubnetId Filter MaxResults NextToken", do: (*request).listSubnets},
	"DescribeNetworkInterfaces": {params: "NetworkInterfaceId Filter MaxResults NextToken IncludeManagedResources",
		do: (*request).listInterfaces},
	"DescribeInstances":         {params: "InstanceId Filter MaxResults NextToken IncludeManagedResources", do: (*request).listInstances},
	"DescribeAvailabilityZones": {params: "ZoneName ZoneId Filter AllAvailabilityZones", do: (*request).listZones},
	"DescribeAccountAttributes": {params: "AttributeName", do: (*request).accountAttributes},
	"DescribeRouteTables":       {params: "RouteTableId Filter MaxResults NextToken", do: (*request).listRouteTables},
}

// resource is one thing that a describe shows: its id, what it has for the names of filters besides tags, and how it is
// written.
type resource struct {
	id     string
	values func(filter string) []string
	write  func(x *writer)
}

// describe answers a describe of resources that ids or filters select.
func (r *request) describe(list, idParam, missingCode string, all []resource, known ...string) error {
	filters, err := r.filters(append(known, "tag:", "tag-key")...)
	if err != nil {
		return err
	}
	ids := r.p.texts(idParam)
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(o resource) bool { return o.id == id }) {
			return &Refusal{missingCode, fmt.Sprintf("The ID '%s' does not exist", id)}
		}
	}
	var shown []listed
	for i, o := range all {
		if len(ids) > 0 && !slices.Contains(ids, o.id) {
			continue
		}
		if filters.match(func(name string) []string {
			if strings.HasPrefix(name, "tag") {
				return tagValues(r.tagsAt(o.id, r.now), name)
			}
			return o.values(name)
		}) {
			shown = append(shown, listed{i, o.write})
		}
	}
	return r.page(list, shown)
}

// values makes the values of a resource out of a table by the filters' names.
func values(table map[string][]string) func(string) []string {
	return func(name string) []string { return table[name] }
}

func (r *request) listVPCs() error {
	var all []resource
	for _, v := range r.vpcs {
		all = append(all, resource{v.id, values(map[string][]string{
			"vpc-id": {v.id}, "cidr": {v.cidr}, "cidr-block-association.cidr-block": {v.cidr}, "owner-id": {r.account},
			"state": {"available"}, "is-default": {fmt.Sprint(v.byDefault)}, "isDefault": {fmt.Sprint(v.byDefault)},
		}), func(x *writer) {
			x.text("vpcId", v.id)
			x.text("ownerId", r.account)
			x.text("state", "available")
			x.text("cidrBlock", v.cidr)
			x.list("cidrBlockAssociationSet", "item", 1, func(int) {
				x.text("cidrBlock", v.cidr)
				x.text("associationId", "vpc-cidr-assoc-"+strings.TrimPrefix(v.id, "vpc-"))
				x.open("cidrBlockState")
				x.text("state", "associated")
				x.close("cidrBlockState")
			})
			x.text("dhcpOptionsId", "default")
			x.text("instanceTenancy", "default")
			x.flag("isDefault", v.byDefault)
			writeTags(x, r.tagsAt(v.id, r.now))
		}})
	}
	return r.describe("vpcSet", "VpcId", "InvalidVpcID.NotFound", all, "vpc-id", "cidr", "cidr-block-association.cidr-block",
		"owner-id", "state", "is-default", "isDefault")
}

// zoneID returns the id of a zone, which AWS numbers: use1-az1. Here it is the place in the world's list.
func (w *World) zoneID(zone string) string {
	short := strings.NewReplacer("us-gov-", "usg", "north", "n", "south", "s", "east", "e", "west", "w", "central", "c").Replace(w.region)
	return fmt.Sprintf("%s-az%d", strings.ReplaceAll(short, "-", ""), slices.Index(w.zones, zone)+1)
}

func (r *request) listSubnets() error {
	var all []resource
	for _, s := range r.subnets {
		all = append(all, resource{s.id, values(map[string][]string{
			"subnet-id": {s.id}, "vpc-id": {s.vpc}, "availability-zone": {s.zone}, "availabilityZone": {s.zone},
			"availability-zone-id": {r.zoneID(s.zone)}, "cidr-block": {s.cidr}, "owner-id": {r.account}, "state": {"available"},
		}), func(x *writer) {
			x.text("subnetId", s.id)
			x.text("subnetArn", r.arn("subnet", s.id))
			x.text("state", "available")
			x.text("ownerId", r.account)
			x.text("vpcId", s.vpc)
			x.text("cidrBlock", s.cidr)
			x.empty("ipv6CidrBlockAssociationSet")
			x.number("availableIpAddressCount", 251)
			x.text("availabilityZone", s.zone)
			x.text("availabilityZoneId", r.zoneID(s.zone))
			x.flag("defaultForAz", false)
			x.flag("mapPublicIpOnLaunch", false)
			writeTags(x, r.tagsAt(s.id, r.now))
		}})
	}
	return r.describe("subnetSet", "SubnetId", "InvalidSubnetID.NotFound", all, "subnet-id", "vpc-id", "availability-zone",
		"availabilityZone", "availability-zone-id", "cidr-block", "owner-id", "state")
}

// writeGroupSet writes the groups of an interface or instance.
func (r *request) writeGroupSet(x *writer, ids []string) {
	x.list("groupSet", "item", len(ids), func(i int) {
		x.text("groupId", ids[i])
		if g, ok := r.groups.current(ids[i]); ok {
			x.text("groupName", g.name)
		}
	})
}

func (r *request) listInterfaces() error {
	var all []resource
	for _, n := range r.interfaces {
		s := r.subnet(n.subnet)
		all = append(all, resource{n.id, values(map[string][]string{
			"network-interface-id": {n.id}, "subnet-id": {n.subnet}, "vpc-id": {s.vpc}, "availability-zone": {s.zone},
			"addresses.private-ip-address": n.addresses, "private-ip-address": n.addresses, "ipv6-addresses.ipv6-address": n.ipv6,
			"attachment.instance-id": {n.instance}, "group-id": n.groups, "owner-id": {r.account}, "status": {n.status},
			"description": {n.description}, "interface-type": {n.kind},
		}), func(x *writer) { r.writeInterface(x, n, true) }})
	}
	return r.describe("networkInterfaceSet", "NetworkInterfaceId", "InvalidNetworkInterfaceID.NotFound", all,
		"network-interface-id", "subnet-id", "vpc-id", "availability-zone", "addresses.private-ip-address", "private-ip-address",
		"ipv6-addresses.ipv6-address", "attachment.instance-id", "group-id", "owner-id", "status", "description", "interface-type")
}

// writeInterface writes a NetworkInterface, or what an instance shows of it: an InstanceNetworkInterface.
func (r *request) writeInterface(x *writer, n *networkInterface, alone bool) {
	s := r.subnet(n.subnet)
	x.text("networkInterfaceId", n.id)
	x.text("subnetId", n.subnet)
	x.text("vpcId", s.vpc)
	if alone {
		x.text("availabilityZone", s.zone)
	}
	x.text("description", n.description)
	x.text("ownerId", r.account)
	x.text("status", n.status)
	x.text("interfaceType", n.kind)
	r.writeGroupSet(x, n.groups)
	if n.instance != "" {
		x.open("attachment")
		x.text("attachmentId", "eni-attach-"+strings.TrimPrefix(n.id, "eni-"))
		if alone {
			x.text("instanceId", n.instance)
			x.text("instanceOwnerId", r.account)
		}
		x.number("deviceIndex", 0)
		x.text("status", "attached")
		x.close("attachment")
	}
	if len(n.addresses) > 0 {
		x.text("privateIpAddress", n.addresses[0])
	}
	x.list("privateIpAddressesSet", "item", len(n.addresses), func(i int) {
		x.text("privateIpAddress", n.addresses[i])
		x.flag("primary", i == 0)
	})
	x.list("ipv6AddressesSet", "item", len(n.ipv6), func(i int) { x.text("ipv6Address", n.ipv6[i]) })
	x.list("ipv4PrefixSet", "item", len(n.prefixes), func(i int) { x.text("ipv4Prefix", n.prefixes[i]) })
	x.empty("ipv6PrefixSet")
	if alone {
		writeTags(x, r.tagsAt(n.id, r.now))
	}
}

// The codes of an instance's states (API_InstanceState).
var instanceStates = map[string]int64{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

func (r *request) listInstances() error {
	var all []resource
	for _, i := range r.instances {
		s := r.subnet(i.subnet)
		all = append(all, resource{i.id, values(map[string][]string{
			"instance-id": {i.id}, "subnet-id": {i.subnet}, "vpc-id": {s.vpc}, "availability-zone": {s.zone},
			"private-dns-name": {i.dnsName}, "private-ip-address": {i.address}, "instance-state-name": {i.state},
			"instance-state-code": {fmt.Sprint(instanceStates[i.state])}, "instance.group-id": i.groups, "instance-type": {i.kind},
			"owner-id": {r.account},
		}), func(x *writer) { r.writeReservation(x, i, s) }})
	}
	return r.describe("reservationSet", "InstanceId", "InvalidInstanceID.NotFound", all, "instance-id", "subnet-id", "vpc-id",
		"availability-zone", "private-dns-name", "private-ip-address", "instance-state-name", "instance-state-code",
		"instance.group-id", "instance-type", "owner-id")
}

func (r *request) writeReservation(x *writer, i *instance, s *subnet) {
	x.text("reservationId", "r-"+strings.TrimPrefix(i.id, "i-"))
	x.text("ownerId", r.account)
	x.empty("groupSet")
	x.list("instancesSet", "item", 1, func(int) {
		x.text("instanceId", i.id)
		x.open("instanceState")
		x.number("code", instanceStates[i.state])
		x.text("name", i.state)
		x.close("instanceState")
		x.text("privateDnsName", i.dnsName)
		x.text("instanceType", i.kind)
		x.open("placement")
		x.text("availabilityZone", s.zone)
		x.text("tenancy", "default")
		x.close("placement")
		x.text("subnetId", i.subnet)
		x.text("vpcId", s.vpc)
		x.optional("privateIpAddress", i.address)
		r.writeGroupSet(x, i.groups)
		var attached []*networkInterface
		for _, n := range r.interfaces {
			if n.instance == i.id {
				attached = append(attached, n)
			}
		}
		x.list("networkInterfaceSet", "item", len(attached), func(j int) { r.writeInterface(x, attached[j], false) })
		writeTags(x, r.tagsAt(i.id, r.now))
	})
}

func (r *request) listZones() error {
	filters, err := r.filters("zone-name", "zone-id", "zone-type", "region-name", "state", "opt-in-status", "group-name")
	if err != nil {
		return err
	}
	names, ids := r.p.texts("ZoneName"), r.p.texts("ZoneId")
	for _, name := range names {
		if !slices.Contains(r.zones, name) {
			return invalid("Invalid availability zone: [%s]", name)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(r.zones, func(z string) bool { return r.zoneID(z) == id }) {
			return invalid("Invalid availability zone-id: [%s]", id)
		}
	}
	var shown []string
	for _, z := range r.zones {
		of := values(map[string][]string{
			"zone-name": {z}, "zone-id": {r.zoneID(z)}, "zone-type": {"availability-zone"}, "region-name": {r.region},
			"state": {"available"}, "opt-in-status": {"opt-in-not-required"}, "group-name": {r.region + "-zg-1"},
		})
		if (len(names) == 0 || slices.Contains(names, z)) && (len(ids) == 0 || slices.Contains(ids, r.zoneID(z))) && filters.match(of) {
			shown = append(shown, z)
		}
	}
	r.x.list("availabilityZoneInfo", "item", len(shown), func(i int) {
		r.x.text("zoneName", shown[i])
		r.x.text("zoneId", r.zoneID(shown[i]))
		r.x.text("zoneState", "available")
		r.x.text("zoneType", "availability-zone")
		r.x.text("regionName", r.region)
		r.x.text("groupName", r.region+"-zg-1")
		r.x.text("optInStatus", "opt-in-not-required")
		r.x.text("networkBorderGroup", r.region)
		r.x.empty("messageSet")
	})
	return nil
}

func (r *request) accountAttributes() error {
	defaultVPC := "none"
	if v := r.defaultVPC(); v != nil {
		defaultVPC = v.id
	}
	all := []tag{
		{"supported-platforms", "VPC"}, {"default-vpc", defaultVPC}, {"max-instances", "20"},
		{"vpc-max-security-groups-per-interface", "5"}, {"max-elastic-ips", "5"}, {"vpc-max-elastic-ips", "5"},
	}
	names := r.p.texts("AttributeName")
	var shown []tag
	for _, a := range all {
		if len(names) == 0 || slices.Contains(names, a.key) {
			shown = append(shown, a)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(a tag) bool { return a.key == name }) {
			return invalid("Invalid attribute %s", name)
		}
	}
	r.x.list("accountAttributeSet", "item", len(shown), func(i int) {
		r.x.text("attributeName", shown[i].key)
		r.x.list("attributeValueSet", "item", 1, func(int) { r.x.text("attributeValue", shown[i].value) })
	})
	return nil
}

// listRouteTables shows none: the world has no routes.
func (r *request) listRouteTables() error {
	return r.describe("routeTableSet", "RouteTableId", "InvalidRouteTableID.NotFound", nil, "vpc-id", "association.subnet-id",
		"association.main", "association.gateway-id", "route-table-id")
}
