package awsapi

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"linearize.example/traces"
)

var targetActions = map[string]action{
	traces.RegisterTargets:          {lag: "targets", params: "TargetGroupArn Targets", do: (*request).register},
	traces.DeregisterTargets:        {lag: "targets", params: "TargetGroupArn Targets", do: (*request).deregister},
	"DescribeTargetHealth":          {params: "TargetGroupArn Targets Include", do: (*request).targetHealth},
	"DescribeTargetGroups":          {params: "TargetGroupArns Names LoadBalancerArn Marker PageSize", do: (*request).listTargetGroups},
	"DescribeTargetGroupAttributes": {params: "TargetGroupArn", do: (*request).targetGroupAttributes},
	"ModifyTargetGroupAttributes":   {lag: "targets", params: "TargetGroupArn Attributes", do: (*request).modifyTargetGroupAttributes},
	"DescribeTags":                  {params: "ResourceArns", do: (*request).listResourceTags},
	"AddTags":                       {lag: "tags", params: "ResourceArns Tags", do: (*request).addTags},
	"RemoveTags":                    {lag: "tags", params: "ResourceArns TagKeys", do: (*request).removeResourceTags},
}

type targetGroup struct {
	arn, name, protocol, kind, vpc string
	port                           int64
	balancers                      []string
	attributes                     map[string]string
	// healthyAfter is how long a target is initial.
	healthyAfter time.Duration
	targets      lagged[target, *registration]
}

// target is what identifies a target of a group.
type target struct {
	id   string
	port int64
}

// registration is one target's stay in a group: registered, then draining from an instant on, and gone at another.
type registration struct {
	serial     int
	zone       string
	registered traces.Instant
	draining   bool
	gone       traces.Instant
}

func (w *World) targetGroup(arn string) *targetGroup {
	for _, g := range w.targetGroups {
		if g.arn == arn {
			return g
		}
	}
	return nil
}

// targetGroup finds the target group that a call is about.
func (r *request) targetGroup() (*targetGroup, error) {
	arn := r.p.text("TargetGroupArn")
	if arn == "" {
		return nil, validation("A target group ARN must be specified")
	}
	if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":targetgroup/") {
		return nil, validation("'%s' is not a valid target group ARN", arn)
	}
	g := r.World.targetGroup(arn)
	if g == nil {
		return nil, &Refusal{"TargetGroupNotFound", "One or more target groups not found"}
	}
	return g, nil
}

func validation(format string, args ...any) *Refusal {
	return &Refusal{"ValidationError", fmt.Sprintf(format, args...)}
}

// namedTarget is a target as a request names it.
type namedTarget struct {
	target
	zone string
	// anyPort: the request leaves the port out.
	anyPort bool
}

// targets reads and checks the targets that a request names. One without a port has the group's.
func (r *request) targets(g *targetGroup) ([]namedTarget, error) {
	var all []namedTarget
	for _, item := range r.p.list("Targets") {
		t := namedTarget{target{item.text("Id"), g.port}, item.text("AvailabilityZone"), !item.has("Port")}
		port, err := item.integer("Port")
		switch {
		case t.id == "":
			return nil, validation("A target ID must be specified")
		case err != nil || port != nil && (*port < 1 || *port > 65535):
			return nil, validation("Port '%s' is not valid", item.text("Port"))
		case port != nil:
			t.port = *port
		}
		if err := r.checkTarget(g, t.id); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (r *request) checkTarget(g *targetGroup, id string) error {
	switch g.kind {
	case "ip":
		if _, err := netip.ParseAddr(id); err != nil {
			return validation("The IP address '%s' is not a valid IP address", id)
		}
	case "instance":
		if !wellFormed(id, "i-") {
			return &Refusal{"InvalidTarget", fmt.Sprintf("The following targets are not instance IDs: '%s'", id)}
		}
		known := func(i *instance) bool { return i.id == id }
		if len(r.instances) > 0 && !slices.ContainsFunc(r.instances, known) {
			return &Refusal{"InvalidTarget", fmt.Sprintf("The following targets are not in a running state: '%s'", id)}
		}
	}
	return nil
}

func (r *request) register() error {
	g, err := r.targetGroup()
	if err != nil {
		return err
	}
	targets, err := r.targets(g)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return validation("At least one target must be specified")
	}
	for _, t := range targets {
		was, there := g.targets.current(t.target)
		if there && !was.draining {
			continue
		}
		r.serial++
		g.targets.set(t.target, &registration{serial: r.serial, zone: t.zone, registered: r.now}, r.now, r.visible)
	}
	return nil
}

// deregister begins the draining of targets. Those that are not registered are ignored (API_DeregisterTargets).
func (r *request) deregister() error {
	g, err := r.targetGroup()
	if err != nil {
		return err
	}
	targets, err := r.targets(g)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return validation("At least one target must be specified")
	}
	delay, err := strconv.ParseInt(g.attributes[deregistrationDelay], 10, 32)
	if err != nil {
		delay = 300
	}
	gone := r.now.Add(time.Duration(delay) * time.Second)
	for t, was := range g.registered(traces.Forever, r.now) {
		if was.draining || !slices.ContainsFunc(targets, func(n namedTarget) bool {
			return n.target == t || n.anyPort && n.id == t.id // without a port: on all its ports
		}) {
			continue
		}
		if delay == 0 || len(g.balancers) == 0 {
			g.targets.remove(t, r.now, r.visible)
			continue
		}
		draining := *was
		draining.draining, draining.gone = true, gone
		g.targets.set(t, &draining, r.now, r.visible)
	}
	return nil
}

const deregistrationDelay = "deregistration_delay.timeout_seconds"

// registered returns the targets that a reader at an instant sees and that are not gone by now.
func (g *targetGroup) registered(at, now traces.Instant) map[target]*registration {
	all := map[target]*registration{}
	var gone []target
	g.targets.each(at, func(t target, s *registration) {
		if s.draining && s.gone <= now {
			gone = append(gone, t)
			return
		}
		all[t] = s
	})
	for _, t := range gone {
		if s, there := g.targets.current(t); there && s.draining && s.gone <= now {
			g.targets.remove(t, now, now)
		}
	}
	return all
}

func (r *request) targetHealth() error {
	g, err := r.targetGroup()
	if err != nil {
		return err
	}
	asked, err := r.targets(g)
	if err != nil {
		return err
	}
	type described struct {
		target
		*registration
	}
	var all []described
	registered := g.registered(r.now, r.now)
	for t, s := range registered {
		if len(asked) == 0 || slices.ContainsFunc(asked, func(n namedTarget) bool { return n.target == t }) {
			all = append(all, described{t, s})
		}
	}
	slices.SortFunc(all, func(a, b described) int { return cmp.Compare(a.serial, b.serial) })
	for _, n := range asked {
		if registered[n.target] == nil {
			all = append(all, described{n.target, nil})
		}
	}
	x := r.x
	x.list("TargetHealthDescriptions", "member", len(all), func(i int) {
		t := all[i]
		x.open("Target")
		x.text("Id", t.id)
		x.number("Port", t.port)
		if t.registration != nil {
			x.optional("AvailabilityZone", t.zone)
		}
		x.close("Target")
		x.number("HealthCheckPort", t.port)
		state, reason, text := g.health(t.registration, r.now)
		x.open("TargetHealth")
		x.text("State", state)
		x.optional("Reason", reason)
		x.optional("Description", text)
		x.close("TargetHealth")
	})
	return nil
}

// health says how a target is, with the reasons of API_TargetHealth. A nil registration is of a target that is none.
func (g *targetGroup) health(s *registration, now traces.Instant) (state, reason, text string) {
	switch {
	case s == nil:
		return "unused", "Target.NotRegistered", "Target is not registered to the target group"
	case s.draining:
		return "draining", "Target.DeregistrationInProgress", "Target deregistration is in progress"
	case len(g.balancers) == 0:
		return "unused", "Target.NotInUse", "Target group is not configured to receive traffic from the load balancer"
	case now < s.registered.Add(g.healthyAfter):
		return "initial", "Elb.RegistrationInProgress", "Target registration is in progress"
	}
	return "healthy", "", ""
}

func (r *request) listTargetGroups() error {
	arns, names, balancer := r.p.texts("TargetGroupArns"), r.p.texts("Names"), r.p.text("LoadBalancerArn")
	var shown []*targetGroup
	found := map[string]bool{}
	for _, g := range r.targetGroups {
		selected := len(arns)+len(names) == 0 && (balancer == "" || slices.Contains(g.balancers, balancer)) ||
			slices.Contains(arns, g.arn) || slices.Contains(names, g.name)
		if selected {
			found[g.arn], found[g.name] = true, true
			shown = append(shown, g)
		}
	}
	for _, wanted := range append(arns, names...) {
		if !found[wanted] {
			return &Refusal{"TargetGroupNotFound", "One or more target groups not found"}
		}
	}
	size := int64(400)
	if n, err := r.p.integer("PageSize"); err != nil || n != nil && (*n < 1 || *n > 400) {
		return validation("Page size must be between 1 and 400")
	} else if n != nil {
		size = *n
	}
	first := 0
	if marker := r.p.text("Marker"); marker != "" {
		after, err := readToken(marker)
		if err != nil || after < 0 || after > len(shown) {
			return validation("Marker '%s' is not valid", marker)
		}
		first = after
	}
	last := min(len(shown), first+int(size))
	page := shown[first:last]
	r.x.list("TargetGroups", "member", len(page), func(i int) { page[i].write(r.x) })
	if last < len(shown) {
		r.x.text("NextMarker", makeToken(last))
	}
	return nil
}

func (g *targetGroup) write(x *writer) {
	x.text("TargetGroupArn", g.arn)
	x.text("TargetGroupName", g.name)
	x.text("Protocol", g.protocol)
	x.number("Port", g.port)
	x.text("VpcId", g.vpc)
	x.text("HealthCheckProtocol", g.protocol)
	x.text("HealthCheckPort", "traffic-port")
	x.flag("HealthCheckEnabled", true)
	x.number("HealthCheckIntervalSeconds", 15)
	x.number("HealthCheckTimeoutSeconds", 5)
	x.number("HealthyThresholdCount", 2)
	x.number("UnhealthyThresholdCount", 2)
	if strings.HasPrefix(g.protocol, "HTTP") {
		x.text("HealthCheckPath", "/")
		x.open("Matcher")
		x.text("HttpCode", "200")
		x.close("Matcher")
	}
	x.list("LoadBalancerArns", "member", len(g.balancers), func(i int) { x.content(g.balancers[i]) })
	x.text("TargetType", g.kind)
	x.text("IpAddressType", "ipv4")
}

func (r *request) targetGroupAttributes() error {
	g, err := r.targetGroup()
	if err != nil {
		return err
	}
	r.writeAttributes(g)
	return nil
}

func (r *request) writeAttributes(g *targetGroup) {
	var keys []string
	for k := range g.attributes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	r.x.list("Attributes", "member", len(keys), func(i int) {
		r.x.text("Key", keys[i])
		r.x.text("Value", g.attributes[keys[i]])
	})
}

func (r *request) modifyTargetGroupAttributes() error {
	g, err := r.targetGroup()
	if err != nil {
		return err
	}
	items := r.p.list("Attributes")
	for _, item := range items {
		key, value := item.text("Key"), item.text("Value")
		if key == "" {
			return validation("An attribute key must be specified")
		}
		if n, err := strconv.Atoi(value); key == deregistrationDelay && (err != nil || n < 0 || n > 3600) {
			return validation("The value of '%s' must be between 0 and 3600 seconds", key)
		}
	}
	for _, item := range items {
		g.attributes[item.text("Key")] = item.text("Value")
	}
	r.writeAttributes(g)
	return nil
}

// taggedGroups finds the target groups that a call about tags names.
func (r *request) taggedGroups() ([]string, error) {
	arns := r.p.texts("ResourceArns")
	if len(arns) == 0 {
		return nil, validation("At least one resource ARN must be specified")
	}
	for _, arn := range arns {
		if r.World.targetGroup(arn) == nil {
			return nil, &Refusal{"TargetGroupNotFound", "One or more target groups not found"}
		}
	}
	return arns, nil
}

func (r *request) listResourceTags() error {
	arns, err := r.taggedGroups()
	if err != nil {
		return err
	}
	r.x.list("TagDescriptions", "member", len(arns), func(i int) {
		tags := r.tagsAt(arns[i], r.now)
		r.x.text("ResourceArn", arns[i])
		r.x.list("Tags", "member", len(tags), func(j int) {
			r.x.text("Key", tags[j].key)
			r.x.text("Value", tags[j].value)
		})
	})
	return nil
}

func (r *request) addTags() error {
	arns, err := r.taggedGroups()
	if err != nil {
		return err
	}
	tags, err := readTags(r.p, "Tags")
	if err != nil {
		return validation("%s", err.(*Refusal).Message)
	}
	if len(tags) == 0 {
		return validation("At least one tag must be specified")
	}
	for _, arn := range arns {
		for _, t := range tags {
			r.setTag(arn, t, r.now, r.visible)
		}
	}
	return nil
}

func (r *request) removeResourceTags() error {
	arns, err := r.taggedGroups()
	if err != nil {
		return err
	}
	for _, arn := range arns {
		for _, key := range r.p.texts("TagKeys") {
			if l := r.tags[arn]; l != nil {
				l.remove(key, r.now, r.visible)
			}
		}
	}
	return nil
}
