---- MODULE counts ----
(* What makes TLC count a state twice: disjunctions and quantifiers as guards, equal successors, tests after the last
   assignment; with every arithmetic operator and a constraint. *)
EXTENDS Integers, FiniteSets, TLC
CONSTANTS Max, S
VARIABLES n, set, f

Init == n \in {0, 1} /\ set \in SUBSET S /\ f = [x \in S |-> 0]

Even == \E k \in 0..Max : 2 * k = n
Up == \* counted once for each true disjunct
  /\ n < Max
  /\ n % 2 = 0 \/ n > 3 \/ n = 2
  /\ n' = n + 1
  /\ UNCHANGED <<set, f>>
Flip(x) ==
  /\ (Even \/ n \div 2 > 2)
  /\ set' = IF x \in set THEN set \ {x} ELSE set \cup {x}
  /\ n' = (n * 3 - 1) % (Max + 1)
  /\ f' = [f EXCEPT ![x] = (@ + 1) % 2]
Pairs == {<<x, y>> \in S \X S : x # y}
Swap ==
  \E p \in Pairs :
    /\ f[p[1]] # f[p[2]]
    /\ f' = [f EXCEPT ![p[1]] = f[p[2]], ![p[2]] = f[p[1]]]
    /\ n' \in {n, -(-n), Max - n}
    /\ set' = set
    /\ n' # 1 \/ n' >= 0 \/ f' = f
All ==
  /\ \A x \in S : f[x] = 1 \/ x \in set
  /\ IF n > 2 THEN n' = 2 ^ 2 ELSE \/ n' = 0 \/ n' = 1
  /\ IF n = 1 THEN set' = {} ELSE set' = S
  /\ n = 2 => set # {} \/ f[1] = 1
  /\ f' = [x \in S |-> IF x \in set' THEN 1 ELSE 0]
Next == Up \/ (\E x \in S : Flip(x)) \/ Swap \/ All

Small == n + Cardinality(set) < Max + 2
Bound == n <= Max - 1 \/ set # S
Never == ~(n = 4 /\ set = {1})
TypeOK == n \in 0..Max /\ set \in SUBSET S /\ f \in [S -> {0, 1}]
====
