-------------------------------- MODULE spec --------------------------------
(***************************************************************************)
(* How the AWS Load Balancer Controller keeps the ingress rules of one     *)
(* security group, what can go wrong, and which change of the controller   *)
(* prevents it.                                                            *)
(*                                                                         *)
(* How to read this module without knowing TLA+: a state is a value for    *)
(* each variable. An action is a condition on the state before a step      *)
(* (lines without a prime) and on the state after it (primed names).       *)
(* TLC, the model checker, starts from Init and takes every step that Next *)
(* allows, from every state it reaches; the properties at the end must be  *)
(* true in all of them. "/\" is and, "\/" is or, "~" is not, "\E" is there *)
(* is, "\A" is for all, "#" is not equal, and [f EXCEPT ![x] = y] is f     *)
(* with the value at x replaced by y.                                      *)
(*                                                                         *)
(* Lines are those of kubernetes-sigs/aws-load-balancer-controller v3.4.0: *)
(*   nm   pkg/networking/networking_manager.go                             *)
(*   sgr  pkg/networking/security_group_reconciler.go                      *)
(*   sgm  pkg/networking/security_group_manager.go                         *)
(*   rm   pkg/targetgroupbinding/resource_manager.go                       *)
(*   dr   controllers/elbv2/targetgroupbinding_deferred_reconciler.go      *)
(*                                                                         *)
(* What is left out. There is one group. TargetGroupBinding (TGB) t has    *)
(* one port, numbered t, and at most one pod at a time. Only one protocol  *)
(* occurs, so that a cluster wants at most one rule: from its lowest to    *)
(* its highest wanted port. Deadlock checking must be off (every           *)
(* configuration in designs/ says so): a run may come to rest. Conditions  *)
(* of actions are written so that TLC counts a step once: with =>, not     *)
(* with \/ or \E, of which it would follow every part that is true.        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    \* How big the world is.
    TGBs,              \* the TargetGroupBindings, {1, 2, ...}; TGB t needs port t
    Procs,             \* controller processes, {1} or {1, 2}
    Workers,           \* reconcile workers in each process, {1} or {1, 2}
    MaxPods,           \* pods get the identities 1, 2, ..., MaxPods; then no new pod comes
    MaxLag,            \* a describe may be old by up to so many changes; 0: reads are never old
    MaxFaults,         \* so many faults of the kinds below may happen in a run, together

    \* What the environment may do: TRUE or FALSE, except RuleLimit.
    Failures,          \* an API call fails and has no effect (throttled, broken connection)
    LostAnswers,       \* a change takes effect, but its answer is lost
    DelayedRevokes,    \* a revoke whose answer was lost takes effect later, or never
    Denied,            \* every authorize is denied (UnauthorizedOperation)
    RuleLimit,         \* how many rules the group can hold
    Crashes,           \* the process dies at any step; a new one with empty memory follows
    LeaderChanges,     \* another process leads; the old one finishes what it had begun
    TwoClusters,       \* process p is cluster p, and serves TGB p only; both write to the group
    ExternalRevokes,   \* somebody else removes a managed rule
    StaticRule,        \* somebody else's rule for all ports is always there
    SeveralGroups,     \* interfaces with several groups: a describe outside the mutex
    DefaultVPC,        \* a revoke of absent rules succeeds
    GroupTagged,       \* the group bears the cluster's tag: the first clean-up finds and reads it
    StablePod,         \* the pod of TGB 1 stays
    LagOutlivesCache,  \* reads may still be old when a cache entry has expired (10 min)
    DeferredQueue,     \* unchanged TGBs are deferred and later reconciled in full
    ColdStart,         \* the run begins with a process that has just started
    StartEmpty,        \* the run begins with no managed rule, although targets are registered

    \* The design: what the controller does. v3.4.0 has UseCache and RevokeFirstOnLimit.
    UseCache,              \* rules are kept in memory for 10 minutes
    RevokeFirst,           \* revoke, then authorize (before v2.12.0)
    RevokeFirstOnLimit,    \* after a limit error try again, revoking first (since v2.12.0)
    InvalidateOnError,     \* delete the cache entry when a call fails
    WriteThrough,          \* after a change, cache its computed result
    GuardView,             \* no revoke if what was viewed and not revoked, plus what was
                           \*   authorized, is nothing
    GuardReread,           \* the same, with a new describe just before the revoke
    ConfirmAuthorize,      \* authorize all that is wanted; Duplicate is success; then revoke
    ConfirmBeforeRevoke,   \* the same, but only when something is to be revoked
    ReadYourWrites,        \* after a change, describe until it is visible
    CheckpointVerifiesAWS, \* a TGB is skipped only if its rule is seen in the group
    GroupMutex,            \* permissions are computed before the lock on the group is taken
    AllPorts,              \* one rule for all ports instead of the lowest to the highest
    GateRegister,          \* no new target is registered when the network part failed
    WaitOut,               \* nothing is begun while an earlier call may still take effect: a new
                           \*   leader waits for the old one, a lost call is waited for
    OwnRules,              \* a cluster revokes only rules with its own source

    \* Time, in ticks; only for the properties about time.
    Timed,                 \* TRUE: Tick happens, and a TGB is looked at only when something is due
    DeferMin, DeferMax,    \* delay of a deferred TGB (30 to 45 min; dr 22, 25)
    ResyncMin, ResyncMax,  \* period of the resync (10 h, with 10 % of jitter)
    MarkTTL,               \* life of the mark "recently processed" (the sync period; dr 56)
    RepairBound            \* the bound to check

VARIABLES
    \* EC2 and ELB
    rules,       \* the managed rules of the group
    versions,    \* older contents of the group that a describe may still return, oldest first
    late,        \* rules that a revoke on its way will remove when it arrives
    registered,  \* per TGB the pod whose address is registered as a target, or 0
    \* Kubernetes
    pods,        \* per TGB the identity of its pod, or 0: none
    born,        \* the highest identity that a pod has had
    checkpoint,  \* per TGB the stored checkpoint: the pod (0: none) it stands for, or Unset
    leader,      \* the process that leads
    \* the controller
    memory,      \* per process: cache, computed permissions, whether clean-up knows the group
    worker,      \* per process and worker: the step it is at, and what it has seen
    timer,       \* per process: the deferred queue, the marks, the resync
    \* for the bounds and the properties only
    faults,      \* how many faults have happened
    witness,     \* the processes whose latest look at the group was true, and nobody else has
                 \*   changed it since then
    age          \* for how many ticks never-empty or covered has been violated

vars == << rules, versions, late, registered, pods, born, checkpoint, leader, memory, worker,
           timer, faults, witness, age >>

-----------------------------------------------------------------------------
(* Rules.  A rule is a source and a range of ports.                        *)

Unset == -1

Source(t) == IF TwoClusters THEN t ELSE 1     \* the balancer's group; each cluster has its own
Serves(p) == IF TwoClusters THEN {p} ELSE TGBs
Leads(p)  == ~TwoClusters => leader = p

Rules == {r \in [source : {Source(t) : t \in TGBs}, lo : TGBs, hi : TGBs] : r.lo <= r.hi}

Lowest(ports)  == CHOOSE a \in ports : \A b \in ports : a <= b
Highest(ports) == CHOOSE a \in ports : \A b \in ports : a >= b

\* One rule from the lowest to the highest wanted port (nm 314-347); nothing wanted, no rule.
Aggregate(source, ports) ==
    IF ports = {} THEN {}
    ELSE LET range == IF AllPorts THEN TGBs ELSE ports
         IN {[source |-> source, lo |-> Lowest(range), hi |-> Highest(range)]}

\* A rule with another description. Rules are compared without it (sgr 151-168).
Foreign == IF StaticRule
           THEN {[source |-> 1, lo |-> Lowest(TGBs), hi |-> Highest(TGBs)]} ELSE {}

Allows(set, t) == \E r \in set : r.source = Source(t) /\ r.lo <= t /\ t <= r.hi

\* What the pods that exist need.
Needed == UNION {Aggregate(s, {t \in TGBs : Source(t) = s /\ pods[t] # 0}) :
                    s \in {Source(t) : t \in TGBs}}

\* What a describe may answer: the rules, or one of the older versions.
Answers == {rules} \cup {versions[i] : i \in 1..Len(versions)}

LatestOf(s) == IF Len(s) > MaxLag THEN SubSeq(s, Len(s) - MaxLag + 1, Len(s)) ELSE s

\* The group changes at once; describes may go on answering with what was before.
Change(new) ==
    /\ rules' = new
    /\ versions' = IF new = rules THEN versions ELSE LatestOf(Append(versions, rules))

-----------------------------------------------------------------------------
(* The controller's memory and its workers.                                *)

Steps == {"idle",       \* waiting for work
          "lookup",     \* about to describe the group for its tags, outside the mutex
          "save",       \* has that answer, about to save it
          "lock",       \* waiting for the mutex
          "fetch",      \* about to look at the group: in the cache, or by a describe
          "reload",     \* about to describe, ignoring the cache
          "authorize",  \* about to authorize
          "see-grant",  \* describes until the grant is visible     (ReadYourWrites)
          "reread",     \* about to describe before the revoke      (GuardReread)
          "revoke",     \* about to revoke
          "see-revoke", \* describes until the revoke is visible    (ReadYourWrites)
          "track",      \* about to list the groups with the cluster's tag, once after a start
          "unlock",     \* about to release the mutex
          "register"}   \* about to deregister and register targets

Locked == {"fetch", "reload", "authorize", "see-grant", "reread", "revoke", "see-revoke",
           "track", "unlock"}

Idle == [step |-> "idle", tgb |-> 0, pod |-> 0, wanted |-> {}, view |-> {},
         retried |-> FALSE, revokeFirst |-> FALSE, failed |-> FALSE]

\* One mutex per process (nm 217): it is free when no worker is at a step under it.
MutexFree(p) == \A w \in Workers : worker[p][w].step \notin Locked

\* A work queue gives one reconcile at a time per TGB.
InFlight(p, t) == \E w \in Workers : worker[p][w].step # "idle" /\ worker[p][w].tgb = t

FreshMemory == [cached |-> FALSE, cache |-> {}, computed |-> [t \in TGBs |-> "unknown"],
                tracked |-> FALSE]

FreshTimers ==
    {[queue |-> [t \in TGBs |-> Unset], mark |-> [t \in TGBs |-> 0],
      due |-> IF Timed THEN TGBs ELSE {}, resync |-> n] : n \in ResyncMin..ResyncMax}

\* Until every TGB's permissions are computed, nothing is revoked (nm 237, 267).
AuthorizeOnly(p) == \E t \in Serves(p) : memory[p].computed[t] = "unknown"

Wants(pod) == IF pod = 0 THEN "none" ELSE "port"

WantedBy(p, computed) ==
    Aggregate(IF TwoClusters THEN p ELSE 1, {t \in Serves(p) : computed[t] = "port"})

Save(m, view)  == IF UseCache THEN [m EXCEPT !.cached = TRUE, !.cache = view] ELSE m
Forget(m)      == [m EXCEPT !.cached = FALSE, !.cache = {}]
AfterError(m)  == IF InvalidateOnError THEN Forget(m) ELSE m
AfterGrant(m, grant) ==     \* sgm 145
    IF WriteThrough /\ m.cached THEN [m EXCEPT !.cache = @ \cup grant] ELSE Forget(m)
AfterRemoval(m, extra) ==   \* sgm 165
    IF WriteThrough /\ m.cached THEN [m EXCEPT !.cache = @ \ extra] ELSE Forget(m)

\* Who has seen the group as it is: for the property "tight" only.
AfterLook(p, view) == IF view = rules THEN witness \cup {p} ELSE witness \ {p}
AfterChangeBy(p)   == IF TwoClusters THEN witness ELSE witness \cap {p}

(* The diff, and what follows from it (sgr 97-130).                        *)

Extra(p, me) == {r \in me.view \ me.wanted : OwnRules => r.source = (IF TwoClusters THEN p ELSE 1)}

\* Whether all that is wanted is authorized, whatever the view says.
Confirms(p, me) ==
    ConfirmAuthorize \/ (ConfirmBeforeRevoke /\ Extra(p, me) # {} /\ ~AuthorizeOnly(p))

Missing(p, me) == IF Confirms(p, me) THEN me.wanted ELSE me.wanted \ (me.view \cup Foreign)

MustGrant(p, me) == Missing(p, me) # {}

\* GuardView looks at what the view says will remain, plus what was just authorized.
MustRevoke(p, me) ==
    /\ Extra(p, me) # {}
    /\ ~AuthorizeOnly(p)
    /\ GuardView => (me.wanted = {} \/ (me.view \ Extra(p, me)) \cup Missing(p, me) # {})

\* The network part is over. Tagged groups are then listed, once (nm 243, 507, 590).
Finish(p, me, failed) ==
    [me EXCEPT !.step = IF GroupTagged /\ me.wanted # {} /\ ~AuthorizeOnly(p) /\ ~memory[p].tracked
                        THEN "track" ELSE "unlock",
               !.view = {}, !.retried = FALSE, !.revokeFirst = FALSE, !.failed = failed]

ToRevoke(me) == [me EXCEPT !.step = IF GuardReread THEN "reread" ELSE "revoke"]
ToAuthorize(me) == [me EXCEPT !.step = "authorize"]

AfterAuthorize(p, me) ==
    IF ~me.revokeFirst /\ MustRevoke(p, me) THEN ToRevoke(me) ELSE Finish(p, me, FALSE)

AfterRevoke(p, me) ==
    IF me.revokeFirst /\ MustGrant(p, me) THEN ToAuthorize(me) ELSE Finish(p, me, FALSE)

FirstCall(p, me) ==
    IF me.revokeFirst
    THEN IF MustRevoke(p, me) THEN ToRevoke(me) ELSE AfterRevoke(p, me)
    ELSE IF MustGrant(p, me) THEN ToAuthorize(me) ELSE AfterAuthorize(p, me)

\* Duplicate, NotFound and the limit are tried again once, without the cache (sgr 81-92, 133-148).
TryAgain(p, me, revokeFirst) ==
    IF me.retried THEN Finish(p, me, TRUE)
    ELSE [me EXCEPT !.step = "reload", !.view = {}, !.retried = TRUE, !.revokeFirst = revokeFirst]

-----------------------------------------------------------------------------
(* The first state: two pods, both registered, their ports open.           *)

Init ==
    /\ pods = [t \in TGBs |-> 1]
    /\ born = 1
    /\ registered = pods
    /\ checkpoint = pods
    /\ rules = IF StartEmpty THEN {} ELSE Needed
    /\ versions = << >>
    /\ late = {}
    /\ leader = 1
    /\ memory = [p \in Procs |->
            IF ColdStart THEN FreshMemory
            ELSE [FreshMemory EXCEPT !.computed = [t \in TGBs |-> "port"], !.tracked = TRUE]]
    /\ worker = [p \in Procs |-> [w \in Workers |-> Idle]]
    /\ timer \in [Procs -> FreshTimers]
    /\ faults = 0
    /\ witness = {}
    /\ age = 0

-----------------------------------------------------------------------------
(* Pods come and go.                                                       *)

PodComes(t) ==
    /\ pods[t] = 0
    /\ born < MaxPods
    /\ born' = born + 1
    /\ pods' = [pods EXCEPT ![t] = born + 1]
    /\ UNCHANGED << rules, versions, late, registered, checkpoint, leader, memory, worker, timer,
                    faults, witness, age >>

PodGoes(t) ==
    /\ pods[t] # 0
    /\ StablePod => t # 1
    /\ pods' = [pods EXCEPT ![t] = 0]
    /\ UNCHANGED << rules, versions, late, registered, born, checkpoint, leader, memory, worker,
                    timer, faults, witness, age >>

-----------------------------------------------------------------------------
(* One reconcile of a TGB, in the order of its steps.                      *)

\* Something makes the controller look at an unchanged TGB: a resync or a start. Without a clock
\* this may happen at any time.
Triggered(p, t) == Timed => t \in timer[p].due

Shows(view, t) == pods[t] # 0 => Allows(view, t)

\* A changed TGB is taken up: the endpoints are resolved, the checkpoint differs (rm 173-193).
Pick(p, w, t) ==
    /\ Leads(p) /\ t \in Serves(p)
    /\ worker[p][w].step = "idle" /\ ~InFlight(p, t)
    /\ checkpoint[t] = pods[t] =>
         CheckpointVerifiesAWS /\ Triggered(p, t) /\ \E v \in Answers : ~Shows(v, t)
    /\ LET computed == [memory[p].computed EXCEPT ![t] = Wants(pods[t])]
           outside  == SeveralGroups /\ UseCache /\ pods[t] # 0 /\ ~memory[p].cached
       IN /\ worker' = [worker EXCEPT ![p][w] =
                [Idle EXCEPT !.step = IF outside THEN "lookup" ELSE "lock",
                             !.tgb = t, !.pod = pods[t],
                             !.wanted = IF GroupMutex THEN WantedBy(p, computed) ELSE {}]]
          /\ memory' = IF GroupMutex THEN [memory EXCEPT ![p].computed = computed] ELSE memory
    /\ timer' = [timer EXCEPT ![p].due = @ \ {t}]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, faults,
                    witness, age >>

\* An unchanged TGB is skipped (rm 193-196) and handed to the deferred queue, unless it is marked
\* as queued or processed recently (dr 64-70).
Skip(p, t) ==
    /\ DeferredQueue
    /\ Leads(p) /\ t \in Serves(p)
    /\ ~InFlight(p, t) /\ {w \in Workers : worker[p][w].step = "idle"} # {}
    /\ Triggered(p, t)
    /\ checkpoint[t] = pods[t]
    /\ CheckpointVerifiesAWS => \E v \in Answers : Shows(v, t)
    /\ IF timer[p].mark[t] = 0 /\ timer[p].queue[t] = Unset
       THEN \E delay \in DeferMin..DeferMax :
              timer' = [timer EXCEPT ![p].due = @ \ {t}, ![p].queue[t] = delay,
                                     ![p].mark[t] = MarkTTL]
       ELSE Timed /\ timer' = [timer EXCEPT ![p].due = @ \ {t}]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, memory,
                    worker, faults, witness, age >>

\* The delay of a deferred TGB is over: its checkpoint is emptied (dr 97-115).
FireDeferred(p, t) ==
    /\ Leads(p)
    /\ timer[p].queue[t] = 0
    /\ timer' = [timer EXCEPT ![p].queue[t] = Unset]
    /\ checkpoint' = [checkpoint EXCEPT ![t] = Unset]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, leader, memory, worker, faults,
                    witness, age >>

\* An interface with several groups: their tags are looked up through the same cache, outside the
\* mutex (nm 168, 548-554). The describe is answered now ...
LookUpGroup(p, w) ==
    /\ worker[p][w].step = "lookup"
    /\ \E v \in Answers :
         worker' = [worker EXCEPT ![p][w].step = "save", ![p][w].view = v]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, memory,
                    timer, faults, witness, age >>

\* ... and the answer is saved later (sgm 107).
SaveLookUp(p, w) ==
    /\ worker[p][w].step = "save"
    /\ memory' = [memory EXCEPT ![p] = Save(@, worker[p][w].view)]
    /\ worker' = [worker EXCEPT ![p][w].step = "lock", ![p][w].view = {}]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, witness, age >>

\* The mutex is taken, this TGB's permissions are stored, all are aggregated (nm 217-230). A group
\* that nobody wants is left alone until all are computed, and then cleaned (nm 243, 506-527), if it
\* is known: a TGB had a pod in it since the start (nm 223), or it bears the cluster's tag.
Lock(p, w) ==
    /\ worker[p][w].step = "lock"
    /\ MutexFree(p)
    /\ WaitOut => late = {}
    /\ LET me == worker[p][w]
           computed == IF GroupMutex THEN memory[p].computed
                       ELSE [memory[p].computed EXCEPT ![me.tgb] = Wants(me.pod)]
           wanted == IF GroupMutex THEN me.wanted ELSE WantedBy(p, computed)
           all == \A t \in Serves(p) : computed[t] # "unknown"
           tracked == memory[p].tracked \/ (~GroupTagged /\ me.pod # 0)
           step == IF wanted # {} THEN "fetch"
                   ELSE IF ~all THEN "unlock"
                   ELSE IF tracked THEN "fetch"
                   ELSE IF GroupTagged THEN "track"
                   ELSE "unlock"
       IN /\ memory' = [memory EXCEPT ![p].computed = computed, ![p].tracked = tracked]
          /\ worker' = [worker EXCEPT ![p][w] =
                [me EXCEPT !.step = step, !.wanted = wanted,
                           !.revokeFirst = RevokeFirst /\ step \in {"fetch", "track"}]]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, witness, age >>

\* The group's rules are taken from the cache ... (sgr 75, sgm 89-94)
ReadCache(p, w) ==
    /\ worker[p][w].step = "fetch"
    /\ memory[p].cached
    /\ LET me == [worker[p][w] EXCEPT !.view = memory[p].cache]
       IN worker' = [worker EXCEPT ![p][w] = FirstCall(p, me)]
    /\ witness' = AfterLook(p, memory[p].cache)
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, memory,
                    timer, faults, age >>

\* ... or from EC2, and saved (sgm 99-107) ...
Describe(p, w) ==
    /\ worker[p][w].step = "fetch"
    /\ ~memory[p].cached
    /\ \E v \in Answers :
         /\ worker' = [worker EXCEPT ![p][w] = FirstCall(p, [worker[p][w] EXCEPT !.view = v])]
         /\ memory' = [memory EXCEPT ![p] = Save(@, v)]
         /\ witness' = AfterLook(p, v)
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, age >>

\* ... or, after certain errors, from EC2 whatever the cache holds; saved too (sgr 87, sgm 107).
Reload(p, w) ==
    /\ worker[p][w].step = "reload"
    /\ \E v \in Answers :
         /\ worker' = [worker EXCEPT ![p][w] = FirstCall(p, [worker[p][w] EXCEPT !.view = v])]
         /\ memory' = [memory EXCEPT ![p] = Save(@, v)]
         /\ witness' = AfterLook(p, v)
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, age >>

Present == rules \cup Foreign

\* Authorize adds all rules or none (sgr 115-119, sgm 129-147).
AuthorizeOk(p, w) ==
    LET me == worker[p][w]
        grant == Missing(p, me)
    IN /\ me.step = "authorize"
       /\ ~Denied
       /\ grant \cap Present = {}
       /\ Cardinality(Present \cup grant) <= RuleLimit
       /\ Change(rules \cup grant)
       /\ memory' = [memory EXCEPT ![p] = AfterGrant(@, grant)]
       /\ worker' = [worker EXCEPT ![p][w] =
            IF ReadYourWrites THEN [me EXCEPT !.step = "see-grant"] ELSE AfterAuthorize(p, me)]
       /\ witness' = AfterChangeBy(p)
       /\ UNCHANGED << late, registered, pods, born, checkpoint, leader, timer, faults, age >>

\* One of the rules is there: InvalidPermission.Duplicate, and none is added. Only
\* ConfirmAuthorize takes it as good news. (Several wanted rules would need one call each.)
AuthorizeDuplicate(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "authorize"
       /\ ~Denied
       /\ Missing(p, me) \cap Present # {}
       /\ memory' = [memory EXCEPT ![p] = IF Confirms(p, me) THEN @ ELSE AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] =
            IF Confirms(p, me) THEN AfterAuthorize(p, me) ELSE TryAgain(p, me, RevokeFirst)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

\* The group is full: RulesPerSecurityGroupLimitExceeded.
AuthorizeLimit(p, w) ==
    LET me == worker[p][w]
        grant == Missing(p, me)
    IN /\ me.step = "authorize"
       /\ ~Denied
       /\ grant \cap Present = {}
       /\ Cardinality(Present \cup grant) > RuleLimit
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] =
            IF RevokeFirstOnLimit THEN TryAgain(p, me, TRUE) ELSE Finish(p, me, TRUE)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

AuthorizeDenied(p, w) ==
    /\ worker[p][w].step = "authorize"
    /\ Denied
    /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
    /\ worker' = [worker EXCEPT ![p][w] = Finish(p, worker[p][w], TRUE)]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, witness, age >>

\* ReadYourWrites: the describe is repeated until it shows the grant. (Answers that do not show it
\* change nothing, and are not steps.)
SeeGrant(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "see-grant"
       /\ \E v \in Answers :
            /\ me.wanted \subseteq v \cup Foreign
            /\ memory' = [memory EXCEPT ![p] = Save(@, v)]
       /\ worker' = [worker EXCEPT ![p][w] = AfterAuthorize(p, me)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

\* GuardReread: if nothing would be left, the new answer replaces the view, once.
Reread(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "reread"
       /\ \E v \in Answers :
            /\ memory' = [memory EXCEPT ![p] = Save(@, v)]
            /\ worker' = [worker EXCEPT ![p][w] =
                 IF me.wanted = {} \/ v \ Extra(p, me) # {} THEN [me EXCEPT !.step = "revoke"]
                 ELSE IF me.retried THEN Finish(p, me, TRUE)
                 ELSE FirstCall(p, [me EXCEPT !.view = v, !.retried = TRUE])]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

\* Revoke removes all rules or none (sgr 121-127, sgm 149-167).
RevokeOk(p, w) ==
    LET me == worker[p][w]
        extra == Extra(p, me)
    IN /\ me.step = "revoke"
       /\ ~DefaultVPC => extra \subseteq rules
       /\ Change(rules \ extra)
       /\ memory' = [memory EXCEPT ![p] = AfterRemoval(@, extra)]
       /\ worker' = [worker EXCEPT ![p][w] =
            IF ReadYourWrites THEN [me EXCEPT !.step = "see-revoke"] ELSE AfterRevoke(p, me)]
       /\ witness' = AfterChangeBy(p)
       /\ UNCHANGED << late, registered, pods, born, checkpoint, leader, timer, faults, age >>

\* One of the rules is not there: InvalidPermission.NotFound, and none is removed.
RevokeNotFound(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "revoke"
       /\ ~DefaultVPC /\ ~(Extra(p, me) \subseteq rules)
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = TryAgain(p, me, RevokeFirst)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

SeeRevoke(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "see-revoke"
       /\ \E v \in Answers :
            /\ v \cap Extra(p, me) = {}
            /\ memory' = [memory EXCEPT ![p] = Save(@, v)]
       /\ worker' = [worker EXCEPT ![p][w] = AfterRevoke(p, me)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       faults, witness, age >>

\* The groups with the cluster's tag are listed once after a start, as soon as all permissions are
\* computed; the answer holds their rules and is cached as well (nm 590-634, sgm 120-127).
ListTagged(p, w) ==
    /\ worker[p][w].step = "track"
    /\ \E v \in Answers :
         memory' = [memory EXCEPT ![p] = [Save(@, v) EXCEPT !.tracked = TRUE]]
    /\ worker' = [worker EXCEPT ![p][w].step =
            IF worker[p][w].wanted = {} THEN "fetch" ELSE "unlock"]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                    faults, witness, age >>

\* The mutex is released. If anything will change, or the network part failed, the empty
\* checkpoint is stored first (rm 226-232).
Unlock(p, w) ==
    LET me == worker[p][w]
    IN /\ me.step = "unlock"
       /\ worker' = [worker EXCEPT ![p][w] = [me EXCEPT !.step = "register", !.wanted = {}]]
       /\ checkpoint' = IF registered[me.tgb] # me.pod \/ me.failed
                        THEN [checkpoint EXCEPT ![me.tgb] = Unset] ELSE checkpoint
       /\ UNCHANGED << rules, versions, late, registered, pods, born, leader, memory, timer,
                       faults, witness, age >>

\* Targets are deregistered and registered, also after a network error (rm 208-213, 240-272); the
\* new checkpoint is stored unless there was one (rm 288-294, 142). A live target that another
\* process registered meanwhile is not in this worker's list, and stays.
Register(p, w) ==
    LET me == worker[p][w]
        t == me.tgb
        live == pods[t] # 0 /\ registered[t] = pods[t]
        new == IF live THEN registered[t]
               ELSE IF GateRegister /\ me.failed /\ registered[t] # me.pod THEN 0
               ELSE me.pod
    IN /\ me.step = "register"
       /\ registered' = [registered EXCEPT ![t] = new]
       /\ checkpoint' = IF me.failed THEN checkpoint ELSE [checkpoint EXCEPT ![t] = me.pod]
       /\ timer' = IF ~me.failed /\ timer[p].mark[t] = 0      \* dr 73-78
                   THEN [timer EXCEPT ![p].mark[t] = MarkTTL] ELSE timer
       /\ worker' = [worker EXCEPT ![p][w] = Idle]
       /\ UNCHANGED << rules, versions, late, pods, born, leader, memory, faults, witness, age >>

-----------------------------------------------------------------------------
(* Faults.  Each costs one of MaxFaults.                                   *)

Spend == faults < MaxFaults /\ faults' = faults + 1

\* A call fails without effect. Other errors than the three above are not tried again (sgr 82-84).
DescribeFails(p, w) ==
    LET me == worker[p][w]
    IN /\ Failures /\ Spend
       /\ me.step = "reload" \/ (me.step = "fetch" /\ ~memory[p].cached)
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, memory,
                       timer, witness, age >>

AuthorizeFails(p, w) ==
    LET me == worker[p][w]
    IN /\ Failures /\ Spend
       /\ me.step = "authorize"
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       witness, age >>

RevokeFails(p, w) ==
    LET me == worker[p][w]
    IN /\ Failures /\ Spend
       /\ me.step = "revoke"
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, timer,
                       witness, age >>

\* The call takes effect and its answer is lost. The cache is not cleared (sgm 138-140, 158-160).
AuthorizeAnswerLost(p, w) ==
    LET me == worker[p][w]
        grant == Missing(p, me)
    IN /\ LostAnswers /\ Spend
       /\ me.step = "authorize" /\ ~Denied
       /\ grant \cap Present = {}
       /\ Cardinality(Present \cup grant) <= RuleLimit
       /\ Change(rules \cup grant)
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ witness' = AfterChangeBy(p)
       /\ UNCHANGED << late, registered, pods, born, checkpoint, leader, timer, age >>

RevokeAnswerLost(p, w) ==
    LET me == worker[p][w]
        extra == Extra(p, me)
    IN /\ LostAnswers /\ Spend
       /\ me.step = "revoke"
       /\ ~DefaultVPC => extra \subseteq rules
       /\ Change(rules \ extra)
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ witness' = AfterChangeBy(p)
       /\ UNCHANGED << late, registered, pods, born, checkpoint, leader, timer, age >>

\* The answer is lost and the revoke is still on its way.
RevokeDelayed(p, w) ==
    LET me == worker[p][w]
    IN /\ DelayedRevokes /\ Spend
       /\ me.step = "revoke"
       /\ late = {}
       /\ late' = Extra(p, me)
       /\ memory' = [memory EXCEPT ![p] = AfterError(@)]
       /\ worker' = [worker EXCEPT ![p][w] = Finish(p, me, TRUE)]
       /\ UNCHANGED << rules, versions, registered, pods, born, checkpoint, leader, timer,
                       witness, age >>

DelayedRevokeArrives ==
    /\ late # {}
    /\ late' = {}
    /\ Change(IF late \subseteq rules \/ DefaultVPC THEN rules \ late ELSE rules)
    /\ witness' = {}
    /\ UNCHANGED << registered, pods, born, checkpoint, leader, memory, worker, timer, faults,
                    age >>

\* The leading process dies, at any step; the next one starts with nothing in memory.
Crash(p) ==
    /\ Crashes /\ Spend
    /\ Leads(p)
    /\ memory' = [memory EXCEPT ![p] = FreshMemory]
    /\ worker' = [worker EXCEPT ![p] = [w \in Workers |-> Idle]]
    /\ \E fresh \in FreshTimers : timer' = [timer EXCEPT ![p] = fresh]
    /\ witness' = {}
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, age >>

\* Another process leads from now on, with nothing in memory; the old leader takes up no new work,
\* but finishes what it had begun.
LeaderChange(q) ==
    /\ LeaderChanges /\ ~TwoClusters /\ Spend
    /\ q # leader
    /\ \A w \in Workers : worker[q][w].step = "idle"
    /\ WaitOut => \A w \in Workers : worker[leader][w].step = "idle"
    /\ leader' = q
    /\ memory' = [memory EXCEPT ![q] = FreshMemory]
    /\ \E fresh \in FreshTimers : timer' = [timer EXCEPT ![q] = fresh]
    /\ witness' = {}
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, worker, age >>

ExternalRevoke(r) ==
    /\ ExternalRevokes /\ Spend
    /\ r \in rules
    /\ Change(rules \ {r})
    /\ UNCHANGED << late, registered, pods, born, checkpoint, leader, memory, worker, timer,
                    witness, age >>

-----------------------------------------------------------------------------
(* What passes with time.                                                  *)

\* The oldest version is no longer returned by any describe.
Settle ==
    /\ versions # << >>
    /\ versions' = Tail(versions)
    /\ UNCHANGED << rules, late, registered, pods, born, checkpoint, leader, memory, worker, timer,
                    faults, witness, age >>

\* A cache entry is 10 minutes old (sgm 189).
ExpireCache(p) ==
    /\ ~Timed
    /\ memory[p].cached
    /\ ~LagOutlivesCache => versions = << >>
    /\ memory' = [memory EXCEPT ![p] = Forget(@)]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, worker,
                    timer, faults, witness, age >>

\* The resync period is over: every TGB is looked at.
Resync(p) ==
    /\ Timed
    /\ Leads(p)
    /\ timer[p].resync = 0
    /\ \E n \in ResyncMin..ResyncMax :
         timer' = [timer EXCEPT ![p].resync = n, ![p].due = Serves(p)]
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, memory,
                    worker, faults, witness, age >>

Running == \E p \in Procs, w \in Workers : worker[p][w].step # "idle"

\* Down, but not below the floor: 0 for timers that act, Unset for what is not queued.
Less(n) == IF n > 0 THEN n - 1 ELSE n

\* A tick is longer than any reconcile, any lag and the life of a cache entry, so it comes only when
\* nothing is left to do at once.
Tick ==
    /\ Timed
    /\ ~Running
    /\ versions = << >> /\ late = {}
    /\ \A t \in TGBs : checkpoint[t] = pods[t]
    /\ \A p \in Procs : Leads(p) =>
         /\ timer[p].due = {} /\ timer[p].resync > 0
         /\ \A t \in TGBs : timer[p].queue[t] # 0
    /\ timer' = [p \in Procs |->
         [queue |-> [t \in TGBs |-> Less(timer[p].queue[t])],
          mark |-> [t \in TGBs |-> Less(timer[p].mark[t])],
          due |-> timer[p].due, resync |-> Less(timer[p].resync)]]
    /\ memory' = [p \in Procs |-> Forget(memory[p])]
    /\ age' = IF \E t \in TGBs : pods[t] # 0 /\ registered[t] = pods[t] /\ ~Allows(rules, t)
              THEN (IF age > RepairBound THEN age ELSE age + 1) ELSE 0
    /\ UNCHANGED << rules, versions, late, registered, pods, born, checkpoint, leader, worker,
                    faults, witness >>

-----------------------------------------------------------------------------
(* All steps.                                                              *)

Next ==
    \/ \E t \in TGBs : PodComes(t)
    \/ \E t \in TGBs : PodGoes(t)
    \/ \E p \in Procs, w \in Workers, t \in TGBs : Pick(p, w, t)
    \/ \E p \in Procs, t \in TGBs : Skip(p, t)
    \/ \E p \in Procs, t \in TGBs : FireDeferred(p, t)
    \/ \E p \in Procs, w \in Workers : LookUpGroup(p, w)
    \/ \E p \in Procs, w \in Workers : SaveLookUp(p, w)
    \/ \E p \in Procs, w \in Workers : Lock(p, w)
    \/ \E p \in Procs, w \in Workers : ReadCache(p, w)
    \/ \E p \in Procs, w \in Workers : Describe(p, w)
    \/ \E p \in Procs, w \in Workers : Reload(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeOk(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeDuplicate(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeLimit(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeDenied(p, w)
    \/ \E p \in Procs, w \in Workers : SeeGrant(p, w)
    \/ \E p \in Procs, w \in Workers : Reread(p, w)
    \/ \E p \in Procs, w \in Workers : RevokeOk(p, w)
    \/ \E p \in Procs, w \in Workers : RevokeNotFound(p, w)
    \/ \E p \in Procs, w \in Workers : SeeRevoke(p, w)
    \/ \E p \in Procs, w \in Workers : ListTagged(p, w)
    \/ \E p \in Procs, w \in Workers : Unlock(p, w)
    \/ \E p \in Procs, w \in Workers : Register(p, w)
    \/ \E p \in Procs, w \in Workers : DescribeFails(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeFails(p, w)
    \/ \E p \in Procs, w \in Workers : RevokeFails(p, w)
    \/ \E p \in Procs, w \in Workers : AuthorizeAnswerLost(p, w)
    \/ \E p \in Procs, w \in Workers : RevokeAnswerLost(p, w)
    \/ \E p \in Procs, w \in Workers : RevokeDelayed(p, w)
    \/ DelayedRevokeArrives
    \/ \E p \in Procs : Crash(p)
    \/ \E q \in Procs : LeaderChange(q)
    \/ \E r \in Rules : ExternalRevoke(r)
    \/ Settle
    \/ \E p \in Procs : ExpireCache(p)
    \/ \E p \in Procs : Resync(p)
    \/ Tick

\* Fairness: what can go on does go on, lag ends, entries expire. Faults and pods are free.
WorkerSteps(p, w) ==
    \/ SaveLookUp(p, w) \/ Lock(p, w) \/ ReadCache(p, w)
    \/ AuthorizeOk(p, w) \/ AuthorizeDuplicate(p, w) \/ AuthorizeLimit(p, w)
    \/ AuthorizeDenied(p, w) \/ RevokeOk(p, w) \/ RevokeNotFound(p, w)
    \/ Unlock(p, w) \/ Register(p, w)
    \/ LookUpGroup(p, w) \/ Describe(p, w) \/ Reload(p, w) \/ ListTagged(p, w)
    \/ SeeGrant(p, w) \/ Reread(p, w) \/ SeeRevoke(p, w)

Fairness ==
    /\ \A p \in Procs, w \in Workers : WF_vars(WorkerSteps(p, w))
    /\ \A p \in Procs, t \in TGBs :
         /\ SF_vars(\E w \in Workers : Pick(p, w, t))
         /\ SF_vars(Skip(p, t))
         /\ WF_vars(FireDeferred(p, t))
    /\ \A p \in Procs : WF_vars(ExpireCache(p))
    /\ WF_vars(Settle)
    /\ WF_vars(DelayedRevokeArrives)

FairSpec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Properties.                                                             *)

Live(t) == pods[t] # 0 /\ registered[t] = pods[t]

\* never-empty: while some TGB has a live, registered target, the managed rules are not empty (in
\* each cluster, those with its source).
NeverEmpty == \A t \in TGBs : Live(t) => \E r \in rules : r.source = Source(t)

\* covered: the port of every live, registered target is inside some managed rule.
Covered == \A t \in TGBs : Live(t) => Allows(rules, t)

\* What clients feel: the same, any rule counting. Weaker than covered when somebody else's rule
\* helps out.
Reachable == \A t \in TGBs : Live(t) => Allows(Present, t)

\* The last change has settled: nothing is going on, no read is old, every TGB has been reconciled
\* as it is, all permissions are computed, and the leader's latest look at the group was true.
Settled ==
    /\ ~Running
    /\ versions = << >> /\ late = {}
    /\ \A t \in TGBs : checkpoint[t] = pods[t]
    /\ \A p \in Procs : Leads(p) => ~AuthorizeOnly(p)
    /\ \A p \in Procs : Leads(p) => p \in witness

\* tight: then no managed rule is left that nobody wants.
Tight == Settled => rules \subseteq Needed

\* repair-bound: what violates never-empty or covered is repaired within so many ticks.
RepairedInTime == age <= RepairBound

\* Liveness, under FairSpec: whatever happened, the ports of live targets are opened in the end, and
\* what nobody needs is removed in the end (faults and new pods are bounded).
EventuallyRepaired == []<>(NeverEmpty /\ Covered)
EventuallyTight == []<>(rules \subseteq Needed)

TypeOK ==
    /\ rules \in SUBSET Rules
    /\ versions \in UNION {[1..n -> SUBSET Rules] : n \in 0..MaxLag}
    /\ late \in SUBSET Rules
    /\ registered \in [TGBs -> 0..MaxPods]
    /\ pods \in [TGBs -> 0..MaxPods]
    /\ born \in 1..MaxPods
    /\ checkpoint \in [TGBs -> Unset..MaxPods]
    /\ leader \in Procs
    /\ memory \in [Procs -> [cached : BOOLEAN, cache : SUBSET Rules,
                             computed : [TGBs -> {"unknown", "none", "port"}],
                             tracked : BOOLEAN]]
    /\ worker \in [Procs -> [Workers ->
            [step : Steps, tgb : {0} \cup TGBs, pod : 0..MaxPods, wanted : SUBSET Rules,
             view : SUBSET Rules, retried : BOOLEAN, revokeFirst : BOOLEAN, failed : BOOLEAN]]]
    /\ timer \in [Procs -> [queue : [TGBs -> Unset..DeferMax], mark : [TGBs -> 0..MarkTTL],
                            due : SUBSET TGBs, resync : 0..ResyncMax]]
    /\ faults \in 0..MaxFaults
    /\ witness \in SUBSET Procs
    /\ age \in 0..(RepairBound + 1)

\* What must be true of the model itself.
OneInside ==       \* the mutex holds
    \A p \in Procs : Cardinality({w \in Workers : worker[p][w].step \in Locked}) <= 1
OneEach ==         \* one reconcile at a time per TGB
    \A p \in Procs, t \in TGBs :
        Cardinality({w \in Workers : worker[p][w].step # "idle" /\ worker[p][w].tgb = t}) <= 1
EmptyWhenUnused == \* what is not in use is empty, so that equal situations are equal states
    \A p \in Procs :
        /\ ~memory[p].cached => memory[p].cache = {}
        /\ \A w \in Workers : worker[p][w].step = "idle" => worker[p][w] = Idle
Sane == OneInside /\ OneEach /\ EmptyWhenUnused

-----------------------------------------------------------------------------
(* Probes.  Each must be violated by a configuration that names it: what   *)
(* it denies does happen, and no property holds for want of an occasion.   *)

ProbeLive == \A t \in TGBs : born > 1 => ~(pods[t] = born /\ Live(t))  \* a new pod is registered
ProbeSettled == born > 1 => ~Settled                 \* things settle after a change
ProbeShrunk == rules # Needed => Cardinality(rules) # 1  \* one rule, not the needed one
ProbeTwoRules == Cardinality(rules) < 2              \* a new rule beside the old one
ProbeOldCache == \A p \in Procs : memory[p].cached => memory[p].cache = rules
ProbeOldView == \A p \in Procs, w \in Workers :
    worker[p][w].step = "revoke" => worker[p][w].view \subseteq rules \cup worker[p][w].wanted
ProbeAuthorizeOnly == \A p \in Procs, w \in Workers :
    worker[p][w].step = "fetch" => ~AuthorizeOnly(p)
ProbeRevokeFirst == \A p \in Procs, w \in Workers :
    worker[p][w].step = "revoke" => ~worker[p][w].revokeFirst
ProbeFailed == \A p \in Procs, w \in Workers : ~worker[p][w].failed
ProbeTwoAtOnce == \A p, q \in Procs : p # q =>
    ~(\E v, w \in Workers : worker[p][v].step = "revoke" /\ worker[q][w].step = "revoke")
ProbeCleaned == \A t \in TGBs : rules = {} => pods[t] # 0  \* nobody needs anything: no rule
ProbeDrift == age = 0                                \* a gap outlives a tick
ProbeRepaired == age = 0 \/ \E t \in TGBs : Live(t) /\ ~Allows(rules, t)  \* and is closed

=============================================================================
