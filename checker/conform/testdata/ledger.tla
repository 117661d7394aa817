---- MODULE ledger ----
(* Accounts that lend to each other: functions of functions and of records, nested EXCEPT with @, sets of functions, of tuples
   and of sets, CHOOSE, CASE with OTHER, LET with parameters, recursion over sets and functions. *)
EXTENDS Integers, FiniteSets
CONSTANTS People, Top, Strict, Nobody
VARIABLES account, owes, last, groups

Pairs == {p \in People \X People : p[1] # p[2]}
Kinds == {"rich", "even", "poor"}

RECURSIVE Sum(_, _)
Sum(f, s) == IF s = {} THEN 0 ELSE LET p == CHOOSE p \in s : TRUE IN f[p] + Sum(f, s \ {p})

Debt(p) == Sum(owes[p], People)
Claims(p) == Cardinality({q \in People : owes[q][p] > 0})
Kind(p) ==
  CASE account[p].cash > Debt(p) -> "rich"
    [] account[p].cash = Debt(p) -> "even"
    [] OTHER -> "poor"
Richest == CHOOSE p \in People : \A q \in People : account[q].cash <= account[p].cash
First == CHOOSE p \in People : \A q \in People : p <= q
Limits == {[p \in People |-> IF p = q THEN 1 ELSE Top] : q \in People}

Init ==
  /\ account = [p \in People |-> [cash |-> IF p = First THEN Top ELSE 0, kind |-> "even"]]
  /\ owes = [p \in People |-> [q \in People |-> 0]]
  /\ last = Nobody
  /\ groups = [k \in Kinds |-> {}]

Lend ==
  \E pair \in Pairs :
    LET from == pair[1]
        to == pair[2]
        Enough(n) == account[from].cash >= n
        Room(p, n) == account[p].cash + n <= Top /\ owes[p][from] + n <= Top
    IN /\ Enough(1) /\ Room(to, 1)
       /\ account' = [account EXCEPT ![from].cash = @ - 1, ![to].cash = @ + 1]
       /\ owes' = [owes EXCEPT ![to][from] = @ + 1]
       /\ last' = pair
       /\ UNCHANGED groups

Repay(p, q) ==
  /\ owes[p][q] > 0
  /\ Strict => owes[p][q] = Debt(p)
  /\ account[p].cash > 0 /\ account[q].cash < Top
  /\ account' = [account EXCEPT ![p].cash = @ - 1, ![q] = [@ EXCEPT !.cash = @ + 1]]
  /\ owes' = [owes EXCEPT ![p] = [@ EXCEPT ![q] = @ - 1]]
  /\ last' = Nobody
  /\ UNCHANGED groups

Judge ==
  /\ \E p \in People : account[p].kind # Kind(p)
  /\ account' = [p \in People |-> [account[p] EXCEPT !.kind = Kind(p)]]
  /\ last' = IF last = Nobody THEN last ELSE <<last[2], last[1]>>
  /\ groups' = [k \in Kinds |-> {p \in People : Kind(p) = k}]
  /\ UNCHANGED owes

Forgive ==
  /\ \E limit \in Limits : \A p \in People : Debt(p) > limit[p]
  /\ owes' = [p \in People |-> [q \in People |-> IF q = Richest THEN 0 ELSE owes[p][q]]]
  /\ groups' = [k \in Kinds |-> groups[k] \ {Richest}]
  /\ UNCHANGED <<account, last>>

Next == Lend \/ (\E p, q \in People : Repay(p, q)) \/ Judge \/ Forgive

TypeOK ==
  /\ account \in [People -> [cash : 0..Top, kind : Kinds]]
  /\ owes \in [People -> [People -> 0..Top]]
  /\ last \in {Nobody} \cup (People \X People)
  /\ groups \in [Kinds -> SUBSET People]
Kept == Sum([p \in People |-> account[p].cash], People) = Top
Claimed == \A p \in People : Claims(p) < Cardinality(People) /\ owes[p] \in [People -> 0..Top]
Apart == {groups[k] : k \in Kinds} # {People, {}} \/ last = Nobody
====
