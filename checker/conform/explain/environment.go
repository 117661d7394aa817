package explain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"linearize.example/checker/conform"
	"linearize.example/model"
	"linearize.example/model/tlccfg"
)

// Environment says what may happen around the controller without being seen. What a capture shows needs no leave: a call
// that failed, failed.
type Environment struct {
	Name, Text string

	lag                                       int
	processes, workers                        int
	outlives, severalGroups                   bool
	crashes, leaderChanges, failures, answers bool
	delayed, external, defaultVPC             bool
	noTargets                                 bool // calls on targets are not looked at
}

// environments from the narrowest; includes names one that allows no more than this one does.
var environments = []Environment{
	{Name: "fresh-reads", Text: "describes are never old"},
	{Name: "old-reads", Text: "a describe may be old by one change", lag: 1},
	{Name: "older-reads", Text: "a describe may be old by two changes", lag: 2},
	{Name: "slow-reads", Text: "old-reads, also when a cache entry has expired", lag: 1, outlives: true},
	{Name: "two-workers-old-reads", Text: "old-reads, and two reconciles in flight", lag: 1, workers: 2},
	{Name: "three-workers-old-reads", Text: "old-reads, and three reconciles in flight", lag: 1, workers: 3},
	{Name: "very-old-reads", Text: "old by six changes, three reconciles in flight, describes of targets old as well: calls on them tell nothing",
		lag: 6, workers: 3, noTargets: true},
	{Name: "several-groups", Text: "two reconciles in flight, and describes outside the mutex", workers: 2, severalGroups: true},
	{Name: "crash", Text: "old-reads, and the process dies at any step", lag: 1, crashes: true},
	{Name: "failures", Text: "describes fail", failures: true},
	{Name: "lost-answers", Text: "changes take effect and lose their answer", answers: true},
	{Name: "delayed-revokes", Text: "a revoke without an answer takes effect later", delayed: true},
	{Name: "default-vpc", Text: "old-reads, and a revoke of absent rules succeeds", lag: 1, defaultVPC: true},
	{Name: "external-revokes", Text: "somebody else removes rules", external: true},
	{Name: "leader-change", Text: "a second process leads; the first finishes what it had begun", processes: 2, leaderChanges: true},
	{Name: "leader-change-old-reads", Text: "leader-change and old-reads", lag: 1, processes: 2, leaderChanges: true},
}

// EnvironmentNames lists all environments, the narrowest first.
func EnvironmentNames() []string {
	names := make([]string, len(environments))
	for i, e := range environments {
		names[i] = e.Name
	}
	return names
}

// EnvironmentNamed returns an environment. Several names that are joined by + allow all that each of them allows. The error of an
// unknown name lists those there are.
func EnvironmentNamed(name string) (Environment, error) {
	if first, rest, ok := strings.Cut(name, "+"); ok {
		a, err := EnvironmentNamed(first)
		if err != nil {
			return a, err
		}
		b, err := EnvironmentNamed(rest)
		if err != nil {
			return b, err
		}
		return a.and(b), nil
	}
	i := slices.IndexFunc(environments, func(e Environment) bool { return e.Name == name })
	if i < 0 {
		return Environment{}, fmt.Errorf("no environment is called %q; there are %s", name, strings.Join(EnvironmentNames(), ", "))
	}
	e := environments[i]
	e.processes, e.workers = max(e.processes, 1), max(e.workers, 1)
	return e, nil
}

// and returns the environment that allows what each of two allows.
func (e Environment) and(f Environment) Environment {
	return Environment{
		Name: e.Name + "+" + f.Name, Text: e.Text + "; " + f.Text,
		lag: max(e.lag, f.lag), processes: max(e.processes, f.processes), workers: max(e.workers, f.workers),
		outlives: e.outlives || f.outlives, severalGroups: e.severalGroups || f.severalGroups, crashes: e.crashes || f.crashes,
		leaderChanges: e.leaderChanges || f.leaderChanges, failures: e.failures || f.failures, answers: e.answers || f.answers,
		delayed: e.delayed || f.delayed, external: e.external || f.external, defaultVPC: e.defaultVPC || f.defaultVPC,
		noTargets: e.noTargets || f.noTargets,
	}
}

// within says whether all that e allows is allowed by f, so that what is explained in e is explained in f.
func (e Environment) within(f Environment) bool {
	no := func(a, b bool) bool { return !a || b }
	return e.lag <= f.lag && e.processes <= f.processes && e.workers <= f.workers && no(e.outlives, f.outlives) &&
		e.severalGroups == f.severalGroups && no(e.crashes, f.crashes) && no(e.leaderChanges, f.leaderChanges) &&
		no(e.failures, f.failures) && no(e.answers, f.answers) && no(e.delayed, f.delayed) && no(e.external, f.external) &&
		no(e.noTargets, f.noTargets) &&
		e.defaultVPC == f.defaultVPC
}

// world is what the constants are made of.
type world struct {
	design model.Design
	env    Environment
	tgbs   int
	tagged bool
	limit  int // how many rules the group can hold
	vpc    bool
}

func span1(n int) []tlccfg.Value {
	set := make([]tlccfg.Value, n)
	for i := range set {
		set[i] = i + 1
	}
	return set
}

// constants gives every constant of the specification its value.
func (w world) constants() map[string]tlccfg.Value {
	e := w.env
	c := map[string]tlccfg.Value{
		"TGBs": span1(w.tgbs), "Procs": span1(e.processes), "Workers": span1(e.workers),
		"MaxPods": conform.Pods(e.processes, e.workers), "MaxLag": e.lag,
		// Starts, and failures that were seen, are free; the search counts the hidden ones.
		"MaxFaults": 2, "Failures": true, "LostAnswers": true, "DelayedRevokes": e.delayed, "Denied": false,
		"RuleLimit": w.limit, "Crashes": true, "LeaderChanges": e.leaderChanges, "TwoClusters": false,
		"ExternalRevokes": true, "StaticRule": false, "SeveralGroups": e.severalGroups, "DefaultVPC": w.vpc,
		"GroupTagged": w.tagged, "StablePod": false, "LagOutlivesCache": e.outlives, "DeferredQueue": true,
		"ColdStart": false, "StartEmpty": false, "Timed": false, "DeferMin": 0, "DeferMax": 0, "ResyncMin": 0,
		"ResyncMax": 0, "MarkTTL": 0, "RepairBound": 0,
	}
	v := reflect.ValueOf(w.design)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool {
			c[v.Type().Field(i).Name] = f.Bool()
		}
	}
	return c
}
