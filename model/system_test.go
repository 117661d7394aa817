package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linearize.example/model/explore"
	"linearize.example/model/tlccfg"
)

// Packing loses nothing: every successor of many states of every configuration survives it.
func TestPack(t *testing.T) {
	paths, err := filepath.Glob("../designs/*.cfg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	for _, path := range paths {
		_, s := load(t, path)
		r := run(t, s, []string{"TypeOK", "Sane"}, 500)
		r.Each(func(packed explore.State) bool {
			st := s.Unpack(packed)
			s.Next(&st, func(e Event, next *State) {
				if got := s.Unpack(s.Pack(next)); got != *next {
					t.Fatalf("%s: after %v, packed and unpacked:\n%+v\nbefore:\n%+v", path, e.Action, got, *next)
				}
			})
			return true
		})
	}
}

func TestNewSystemRefuses(t *testing.T) {
	for want, change := range map[string]func(*Constants){
		"TGBs is 4; it must be 1 to 3":     func(c *Constants) { c.TGBs = 4 },
		"Procs is 0":                       func(c *Constants) { c.Procs = 0 },
		"MaxLag is 5":                      func(c *Constants) { c.MaxLag = 5 },
		"DeferMin is 3; it must be 0 to 2": func(c *Constants) { c.DeferMin, c.DeferMax = 3, 2 },
		"process p serves binding p":       func(c *Constants) { c.TwoClusters = true },
		"make a constant smaller": func(c *Constants) {
			c.TGBs, c.Procs, c.Workers, c.MaxLag, c.MaxPods = 3, 2, 2, 4, 60
			c.DelayedRevokes, c.DeferredQueue, c.Timed, c.MarkTTL, c.DeferMax, c.ResyncMax = true, true, true, 250, 120, 250
		},
	} {
		c := DefaultConstants(designs[0])
		change(&c)
		if _, err := NewSystem(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestConstantsOf(t *testing.T) {
	text, err := os.ReadFile("../designs/v3.4.0.old-reads.cfg")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"MaxLag = 1", "", "constant MaxLag has no value"},
		{"MaxLag = 1", "MaxLag = TRUE", "constant MaxLag is true; it must be a number"},
		{"UseCache = TRUE", "UseCache = 1", "constant UseCache is 1; it must be TRUE or FALSE"},
		{"TGBs = {1, 2}", "TGBs = {1, 3}", "it must be {1, ..., n}"},
		{"MaxLag = 1", "MaxLag = 1 MaxLagg = 2", "constant MaxLagg is not one of the specification"},
	} {
		config, err := tlccfg.Parse("x.cfg", []byte(strings.Replace(string(text), c.old, c.new, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ConstantsOf(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v; want %q", c.new, c.old, err, c.want)
		}
	}
}

// A fair run stays in some states for ever if it can go round in them, all of them, and is fair in
// doing so. Trying every subset decides that for small graphs.
func TestFairWithin(t *testing.T) {
	const classes = 3
	r := rand.New(rand.NewPCG(7, 7))
	fair, unfair := 0, 0
	for range 4000 {
		n := 1 + r.IntN(6)
		g := liveGraph{strong: uint64(r.IntN(1 << classes)), enabled: make([]uint64, n), edges: make([][]int32, n), classes: make([][]uint64, n)}
		var all []int32
		for v := range n {
			all = append(all, int32(v))
			g.enabled[v] = uint64(r.IntN(1 << classes))
			for range r.IntN(3) {
				class := uint64(0)
				if r.IntN(2) == 0 {
					class = 1 << r.IntN(classes)
				}
				g.edges[v] = append(g.edges[v], int32(r.IntN(n)))
				g.classes[v] = append(g.classes[v], class)
				g.enabled[v] |= class
			}
		}
		want := false
		for subset := 1; subset < 1<<n; subset++ {
			want = want || g.fairSubset(subset, n)
		}
		if got := g.fairWithin(all) != nil; got != want {
			t.Fatalf("fair run: %v, by subsets %v\n%+v", got, want, g)
		}
		if want {
			fair++
		} else {
			unfair++
		}
	}
	if fair < 100 || unfair < 100 {
		t.Errorf("%d graphs with a fair run and %d without: too few of one kind", fair, unfair)
	}
}

// fairSubset reports whether a fair run can visit exactly these states for ever.
func (g *liveGraph) fairSubset(subset, n int) bool {
	in := func(v int32) bool { return subset&(1<<v) != 0 }
	always, ever, taken := ^uint64(0), uint64(0), uint64(0)
	for v := range int32(n) {
		if !in(v) {
			continue
		}
		reached := 1 << v
		for range n {
			for u := range int32(n) {
				for _, to := range g.edges[u] {
					if in(u) && in(to) && reached&(1<<u) != 0 {
						reached |= 1 << to
					}
				}
			}
		}
		if reached != subset {
			return false
		}
		always &= g.enabled[v]
		ever |= g.enabled[v]
		for i, to := range g.edges[v] {
			if in(to) {
				taken |= g.classes[v][i]
			}
		}
	}
	return always&^taken == 0 && ever&g.strong&^taken == 0
}

func TestPublicNames(t *testing.T) {
	for name, want := range map[string]string{
		"NeverEmpty": "never-empty", "RepairedInTime": "repair-bound", "ProbeTwoAtOnce": "probe-two-at-once",
		"EventuallyTight": "eventually-tight", "Other": "Other",
	} {
		if got := PublicName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := Verdict([]string{"NeverEmpty", "Covered"}); got != "never-empty violated, covered violated" {
		t.Error(got)
	}
	if got := Verdict(nil); got != "holds" {
		t.Error(got)
	}
	if _, err := DesignNamed("v9"); err == nil || !strings.Contains(err.Error(), "v3.4.0, v2.7.2") {
		t.Error(err)
	}
	if got := fmt.Sprint(Skip, Tick); got != "Skip Tick" {
		t.Error(got)
	}
}

// A worker of an old leader registers the pod that it saw. The live one, which the new leader has
// registered meanwhile, stays.
func TestRegisterKeepsALiveTarget(t *testing.T) {
	c := DefaultConstants(designs[0])
	c.Procs, c.LeaderChanges, c.MaxFaults = 2, true, 1
	s, err := NewSystem(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, registered := range []uint8{1, 2} {
		st := s.Initial()[0]
		st.Pods[0], st.Born, st.Registered[0] = 2, 2, registered
		st.Worker[0][0] = Worker[Bits]{Step: RegisterStep, TGB: 1, Pod: 1}
		found := false
		s.Next(&st, func(e Event, next *State) {
			if e.Action == Register {
				found = true
				if next.Registered[0] != registered || next.Checkpoint[0] != 1 {
					t.Errorf("registered %d, then %d; checkpoint %d", registered, next.Registered[0], next.Checkpoint[0])
				}
			}
		})
		if !found {
			t.Error("the worker does not register")
		}
	}
}
