---- MODULE mutex ----
(* Peterson's algorithm; with Broken the flag is not raised. *)
EXTENDS Naturals, FiniteSets
CONSTANTS Procs, Broken
VARIABLES pc, flag, turn

Other(p) == CHOOSE q \in Procs : q # p
vars == <<pc, flag, turn>>

Init ==
  /\ pc = [p \in Procs |-> "idle"]
  /\ flag = [p \in Procs |-> FALSE]
  /\ turn \in Procs

Ask(p) ==
  /\ pc[p] = "idle"
  /\ pc' = [pc EXCEPT ![p] = "turn"]
  /\ flag' = [flag EXCEPT ![p] = ~Broken]
  /\ UNCHANGED turn

Give(p) ==
  /\ pc[p] = "turn"
  /\ pc' = [pc EXCEPT ![p] = "wait"]
  /\ turn' = Other(p)
  /\ UNCHANGED flag

Enter(p) ==
  /\ pc[p] = "wait"
  /\ ~flag[Other(p)] \/ turn = p
  /\ pc' = [pc EXCEPT ![p] = "in"]
  /\ UNCHANGED <<flag, turn>>

Leave(p) ==
  /\ pc[p] = "in"
  /\ pc' = [pc EXCEPT ![p] = "idle"]
  /\ flag' = [flag EXCEPT ![p] = FALSE]
  /\ UNCHANGED turn

Next == \E p \in Procs : Ask(p) \/ Give(p) \/ Enter(p) \/ Leave(p)
Spec == Init /\ [][Next]_vars /\ WF_vars(Next)

Exclusion == Cardinality({p \in Procs : pc[p] = "in"}) <= 1
TypeOK ==
  /\ pc \in [Procs -> {"idle", "turn", "wait", "in"}]
  /\ flag \in [Procs -> BOOLEAN]
  /\ turn \in Procs
====
