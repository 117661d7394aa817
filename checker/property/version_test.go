package property

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReleases has the first and the last release of each row of the table of contracts.
func TestReleases(t *testing.T) {
	const typical = 11*time.Hour + 45*time.Minute
	first := Promise{Restarted: 20 * time.Minute, Running: 76 * time.Minute}
	second := Promise{Restarted: 20 * time.Minute, Running: 11*time.Hour + 10*time.Minute}
	third := Promise{Restarted: typical, Running: 22 * time.Hour}
	fourth := Promise{Restarted: 45 * time.Minute, Running: 22 * time.Hour}
	for _, c := range []struct {
		agent        string
		controller   bool
		version      string
		revokesFirst bool
		promise      Promise
	}{
		{"elbv2.k8s.aws/v2.0.0 aws-sdk-go/1.34 (go1.15; linux; amd64)", true, "v2.0.0", true, first},
		{"elbv2.k8s.aws/v2.5.3 aws-sdk-go/1.44", true, "v2.5.3", true, first},
		{"elbv2.k8s.aws/v2.5.4 aws-sdk-go/1.44", true, "v2.5.4", true, second},
		{"aws-sdk-go-v2/1.3 os/linux api/ec2#1.9 elbv2.k8s.aws/v2.9.0 m/F", true, "v2.9.0", true, second},
		{"aws-sdk-go-v2/1.3 os/linux api/ec2#1.9 elbv2.k8s.aws/v2.9.1", true, "v2.9.1", true, third},
		{"elbv2.k8s.aws/v2.11.0", true, "v2.11.0", true, third},
		{"elbv2.k8s.aws/v2.12.0", true, "v2.12.0", false, third},
		{"elbv2.k8s.aws/v2.13.2", true, "v2.13.2", false, third},
		{"elbv2.k8s.aws/v2.13.3", true, "v2.13.3", false, fourth},
		{"elbv2.k8s.aws/v2.17.1", true, "v2.17.1", false, fourth},
		{"elbv2.k8s.aws/v3.0.0", true, "v3.0.0", false, fourth},
		{"elbv2.k8s.aws/v3.5.0", true, "v3.5.0", false, fourth},
		{"elbv2.k8s.aws/3.4.0", true, "v3.4.0", false, fourth},
		{"elbv2.k8s.aws/main-dirty", true, "unknown", false, Promise{}},
		{"aws-cli/2.15.0", false, "unknown", false, Promise{}},
		{"", false, "unknown", false, Promise{}},
	} {
		v, controller := FromUserAgent(c.agent)
		if controller != c.controller || v.String() != c.version {
			t.Errorf("%q is %s, a controller: %v", c.agent, v, controller)
		}
		if known := v != (Version{}); v.RevokesFirst() != c.revokesFirst || v.AuthorizesFirst() != (known && !c.revokesFirst) {
			t.Errorf("%s revokes first: %v, authorizes first: %v", v, v.RevokesFirst(), v.AuthorizesFirst())
		}
		if diff := cmp.Diff(c.promise, v.Promise()); diff != "" {
			t.Errorf("%s: -want +got\n%s", v, diff)
		}
	}
}

func TestManaged(t *testing.T) {
	for description, want := range map[string]bool{
		"elbv2.k8s.aws/targetGroupBinding=shared":         true,
		"team=a,elbv2.k8s.aws/targetGroupBinding=shared":  true,
		"elbv2.k8s.aws/targetGroupBinding=shared,team=a":  true,
		"elbv2.k8s.aws/targetGroupBinding=other":          false,
		"x-elbv2.k8s.aws/targetGroupBinding=shared":       false,
		"elbv2.k8s.aws/targetGroupBinding = shared":       false,
		"elbv2.k8s.aws/targetGroupBinding=shared by hand": false,
		"": false,
	} {
		if got := Managed(description); got != want {
			t.Errorf("Managed(%q) = %v", description, got)
		}
	}
}
