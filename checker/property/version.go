package property

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Version is a release of the controller, "v3.4.0". The zero value means unknown.
type Version struct{ Major, Minor, Patch int }

var release = regexp.MustCompile(`elbv2\.k8s\.aws/v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})`)

// FromUserAgent finds the controller's release in a user agent, which holds elbv2.k8s.aws/<version> at the front, in the
// middle or alone, by release (pkg/aws/aws_config.go). ok is false where the agent is no controller; a controller whose
// version is no release has the zero Version.
func FromUserAgent(agent string) (v Version, ok bool) {
	if m := release.FindStringSubmatch(agent); m != nil {
		v.Major, _ = strconv.Atoi(m[1])
		v.Minor, _ = strconv.Atoi(m[2])
		v.Patch, _ = strconv.Atoi(m[3])
		return v, true
	}
	return v, controllerAgent.MatchString(agent)
}

var controllerAgent = regexp.MustCompile(`elbv2\.k8s\.aws/`)

func (v Version) String() string {
	if v == (Version{}) {
		return "unknown"
	}
	return fmt.Sprintf("v%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Less orders releases.
func (v Version) Less(o Version) bool {
	if v.Major != o.Major {
		return v.Major < o.Major
	}
	if v.Minor != o.Minor {
		return v.Minor < o.Minor
	}
	return v.Patch < o.Patch
}

// RevokesFirst reports whether the release revokes before it authorizes: all before v2.12.0 do (commit 31ffe10da).
func (v Version) RevokesFirst() bool { return v != Version{} && v.Less(Version{2, 12, 0}) }

// AuthorizesFirst reports whether the release authorizes before it revokes.
func (v Version) AuthorizesFirst() bool { return v != Version{} && !v.RevokesFirst() }

// Promise is the longest time in which a release repairs rules that are gone, in the worst case, when nothing but its own
// timers triggers it. The figures follow from the code's constants: the resync (60 min before v2.5.4, then 10 h, by
// controller-runtime's jitter up to 10 % later), the 10 min of the cache, the deferred queue's 30 min and its jitter of
// 15 min.
type Promise struct {
	// Restarted counts from a start of the controller, Running without one.
	Restarted, Running time.Duration
}

// Promise returns the release's repair bounds.
func (v Version) Promise() Promise {
	const cache, deferred = 10 * time.Minute, 45 * time.Minute
	switch {
	case v == Version{}:
		return Promise{}
	case v.Less(Version{2, 5, 4}):
		return Promise{20 * time.Minute, 66*time.Minute + cache}
	case v.Less(Version{2, 9, 1}):
		return Promise{20 * time.Minute, 11*time.Hour + cache}
	case v.Less(Version{2, 13, 3}):
		return Promise{11*time.Hour + deferred, 22 * time.Hour}
	}
	return Promise{deferred, 22 * time.Hour}
}
