---- MODULE commit ----
(* Two-phase commit after Gray and Lamport, "Consensus on Transaction Commit"; with Hasty the manager commits before all
   are prepared. *)
CONSTANTS RM, Hasty
VARIABLES rmState, tmState, prepared, msgs

Messages == [type : {"Prepared"}, rm : RM] \cup [type : {"Commit", "Abort"}, rm : {"all"}]
vars == <<rmState, tmState, prepared, msgs>>

Init ==
  /\ rmState = [r \in RM |-> "working"]
  /\ tmState = "init"
  /\ prepared = {}
  /\ msgs = {}

RcvPrepared(r) ==
  /\ tmState = "init"
  /\ [type |-> "Prepared", rm |-> r] \in msgs
  /\ prepared' = prepared \cup {r}
  /\ UNCHANGED <<rmState, tmState, msgs>>

DoCommit ==
  /\ tmState = "init"
  /\ prepared = RM \/ (Hasty /\ prepared # {})
  /\ tmState' = "committed"
  /\ msgs' = msgs \cup {[type |-> "Commit", rm |-> "all"]}
  /\ UNCHANGED <<rmState, prepared>>

DoAbort ==
  /\ tmState = "init"
  /\ tmState' = "aborted"
  /\ msgs' = msgs \cup {[type |-> "Abort", rm |-> "all"]}
  /\ UNCHANGED <<rmState, prepared>>

Prepare(r) ==
  /\ rmState[r] = "working"
  /\ rmState' = [rmState EXCEPT ![r] = "prepared"]
  /\ msgs' = msgs \cup {[type |-> "Prepared", rm |-> r]}
  /\ UNCHANGED <<tmState, prepared>>

GiveUp(r) ==
  /\ rmState[r] = "working"
  /\ rmState' = [rmState EXCEPT ![r] = "aborted"]
  /\ UNCHANGED <<tmState, prepared, msgs>>

Told(r, type) ==
  /\ [type |-> type, rm |-> "all"] \in msgs
  /\ rmState' = [rmState EXCEPT ![r] = CASE type = "Commit" -> "committed" [] OTHER -> "aborted"]
  /\ UNCHANGED <<tmState, prepared, msgs>>

Next ==
  \/ DoCommit \/ DoAbort
  \/ \E r \in RM :
       \/ RcvPrepared(r) \/ Prepare(r) \/ GiveUp(r)
       \/ \E type \in {"Commit", "Abort"} : Told(r, type)

TypeOK ==
  /\ rmState \in [RM -> {"working", "prepared", "committed", "aborted"}]
  /\ tmState \in {"init", "committed", "aborted"}
  /\ prepared \in SUBSET RM
  /\ msgs \in SUBSET Messages
Consistent == \A r, q \in RM : ~(rmState[r] = "aborted" /\ rmState[q] = "committed")
====
