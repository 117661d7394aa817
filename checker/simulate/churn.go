package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Churn says how pods come and go.
type Churn string

// The kinds of churn.
const (
	Boundary    Churn = "boundary"      // the pods of the lowest or highest port go and come back
	Rolling     Churn = "rolling"       // one binding after another gets new pods
	Random      Churn = "random"        // pods come, go and are replaced anywhere
	ScaleToZero Churn = "scale-to-zero" // bindings lose all their pods for minutes, sometimes all of them
	Steady      Churn = "steady"        // nothing changes: only the controller's own timers run
)

// Churns lists the kinds.
func Churns() []string {
	return []string{string(Boundary), string(Rolling), string(Random), string(ScaleToZero), string(Steady)}
}

// Plan says what script to make.
type Plan struct {
	Churn    Churn
	Seed     uint64
	Duration time.Duration
	Bindings int
	// How often each of these happens, at random times.
	ExternalRevokes, Crashes, Restarts, LeaderChanges int
}

// warmUp is how long the controller is left alone at the beginning, and the quiet time at the end is at least as long, so
// that leftovers have settled before tight is judged.
const warmUp = time.Minute

// MinDuration is the shortest script that a plan makes.
const MinDuration = 5 * warmUp

// NewScript makes the script of a plan. Equal plans give equal scripts.
func NewScript(p Plan) (*Script, error) {
	switch {
	case p.Duration < MinDuration || p.Duration > longest:
		return nil, fmt.Errorf("a duration of %s is not between %s and %s", p.Duration, MinDuration, longest)
	case p.Bindings < 1 || p.Bindings > mostBindings:
		return nil, fmt.Errorf("%d bindings; there have to be 1 to %d", p.Bindings, mostBindings)
	}
	g := generator{Plan: p, dice: rand.New(rand.NewPCG(p.Seed, scriptStream)), until: p.Duration - max(2*warmUp, p.Duration/6)}
	g.script = &Script{Seed: p.Seed, Duration: Duration(p.Duration)}
	for i := range p.Bindings {
		b := ScriptBinding{Name: fmt.Sprintf("test/app-%d", i+1), Port: int32(3000 + i), Pods: 2}
		if i == p.Bindings-1 && i > 0 {
			b = ScriptBinding{Name: "test/mailpit", Port: 8025, Pods: 1}
		}
		g.script.Bindings = append(g.script.Bindings, b)
	}
	switch p.Churn {
	case Boundary:
		g.boundary()
	case Rolling:
		g.rolling()
	case Random:
		g.random()
	case ScaleToZero:
		g.scaleToZero()
	case Steady:
	default:
		return nil, fmt.Errorf("no churn is called %q; there are %v", p.Churn, Churns())
	}
	for _, more := range []struct {
		kind  EventKind
		times int
	}{{ExternalRevoke, p.ExternalRevokes}, {Crash, p.Crashes}, {Restart, p.Restarts}, {LeaderChange, p.LeaderChanges}} {
		for range more.times {
			g.add(g.between(warmUp, g.until), more.kind, "", 0)
		}
	}
	slices.SortStableFunc(g.script.Events, func(a, b Event) int { return int(a.At - b.At) })
	return g.script, g.script.validate()
}

// scriptStream tells the random numbers of scripts from others of the same seed.
const scriptStream = 1

type generator struct {
	Plan
	dice   *rand.Rand
	until  time.Duration // nothing happens after it
	script *Script
}

func (g *generator) add(at time.Duration, kind EventKind, binding string, pods int) {
	if at <= g.until {
		g.script.Events = append(g.script.Events, Event{At: Duration(at.Round(time.Millisecond)), Kind: kind, Binding: binding, Pods: pods})
	}
}

// pause draws the time to the next event: many are short and a few are long, as when events come independently.
func (g *generator) pause(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-g.dice.Float64()) * float64(mean))
}

// below draws a duration from [0, limit), between one from [low, high).
func (g *generator) below(limit time.Duration) time.Duration {
	return time.Duration(g.dice.Float64() * float64(limit))
}

func (g *generator) between(low, high time.Duration) time.Duration { return low + g.below(high-low) }

func (g *generator) pick(n int) int { return int(g.dice.Float64() * float64(n)) }

func (g *generator) any() *ScriptBinding { return &g.script.Bindings[g.pick(len(g.script.Bindings))] }

// boundary: the pods of the lowest or the highest port go and are back, half of the times within seconds, else within a
// minute, so that the range from the lowest to the highest port changes twice. Half of the times some other binding's
// pods are replaced within two seconds, as when a node is drained: another reconcile then sees the group just after
// the change.
func (g *generator) boundary() {
	ends := []*ScriptBinding{&g.script.Bindings[0], &g.script.Bindings[len(g.script.Bindings)-1]}
	for at := warmUp + g.pause(time.Minute); at < g.until; at += g.pause(time.Minute) {
		end := ends[1]
		if g.pick(4) == 0 {
			end = ends[0]
		}
		g.add(at, PodGoes, end.Name, end.Pods)
		if g.pick(2) == 0 {
			g.add(at+g.below(2*time.Second), PodsReplaced, g.any().Name, 0)
		}
		longest := time.Minute
		if g.pick(2) == 0 {
			longest = 5 * time.Second
		}
		back := min(at+g.between(500*time.Millisecond, longest), g.until)
		g.add(back, PodComes, end.Name, end.Pods)
		at = back
	}
}

// rolling: one binding after the other gets new pods, each before an old one goes.
func (g *generator) rolling() {
	for at := warmUp; at < g.until; {
		b := g.any()
		for range b.Pods {
			if at > g.until {
				break
			}
			g.add(at, PodComes, b.Name, 1)
			gone := min(at+g.between(2*time.Second, 20*time.Second), g.until)
			g.add(gone, PodGoes, b.Name, 1)
			at = gone + g.below(5*time.Second)
		}
		at += g.pause(time.Minute)
	}
}

// random: anything may happen to any binding.
func (g *generator) random() {
	pods := map[string]int{}
	for _, b := range g.script.Bindings {
		pods[b.Name] = b.Pods
	}
	for at := warmUp + g.pause(20*time.Second); at < g.until; at += g.pause(20 * time.Second) {
		b := g.any().Name
		switch n := g.pick(10); {
		case n < 4 && pods[b] < 3:
			g.add(at, PodComes, b, 1)
			pods[b]++
		case n < 8 && pods[b] > 0:
			g.add(at, PodGoes, b, 1)
			pods[b]--
		case n < 9:
			g.add(at, PodsReplaced, b, 0)
		default:
			g.add(at, SpecChange, b, 0)
		}
	}
}

// scaleToZero: bindings lose all their pods for minutes; one time in four all bindings do, within seconds, and then the
// group is cleaned.
func (g *generator) scaleToZero() {
	for at := warmUp + g.pause(time.Minute); at < g.until; at += g.pause(2 * time.Minute) {
		some := []*ScriptBinding{g.any()}
		if g.pick(4) == 0 {
			some = nil
			for i := range g.script.Bindings {
				some = append(some, &g.script.Bindings[i])
			}
		}
		back := min(at+g.between(time.Second, 3*time.Minute), g.until)
		for _, b := range some {
			g.add(at+g.below(min(2*time.Second, (back-at)/2)), PodGoes, b.Name, b.Pods)
			g.add(back-g.below(min(2*time.Second, (back-at)/2)), PodComes, b.Name, b.Pods)
		}
		at = back
	}
}
