---- MODULE ring ----
(* Leader election in a ring, after Chang and Roberts; function definitions, recursive operators, nested EXCEPT, LET with
   operators, local records. *)
EXTENDS Naturals, Sequences, FiniteSets
CONSTANT N
VARIABLES node, inbox

Nodes == 1..N
Right(i) == IF i = N THEN 1 ELSE i + 1
Weight[i \in 0..N] == IF i = 0 THEN 0 ELSE i + Weight[i - 1]

RECURSIVE Sum(_)
Sum(s) == IF s = {} THEN 0 ELSE LET x == CHOOSE x \in s : TRUE IN x + Sum(s \ {x})

Init ==
  /\ node = [i \in Nodes |-> [state |-> "candidate", best |-> i, seen |-> {i}]]
  /\ inbox = [i \in Nodes |-> << >>]

Start(i) ==
  /\ node[i].state = "candidate"
  /\ inbox[Right(i)] = << >>
  /\ inbox' = [inbox EXCEPT ![Right(i)] = Append(@, i)]
  /\ node' = [node EXCEPT ![i].state = "waiting"]

Take(i) ==
  /\ inbox[i] # << >>
  /\ LET id == Head(inbox[i])
         Larger(a, b) == IF a > b THEN a ELSE b
         rest == Tail(inbox[i])
     IN /\ Len(inbox[Right(i)]) < 2
        /\ node' = [node EXCEPT ![i].best = Larger(@, id),
                                ![i].seen = @ \cup {id},
                                ![i].state = IF id = i THEN "leader" ELSE IF id > i THEN "lost" ELSE @]
        /\ inbox' = CASE id > i -> [inbox EXCEPT ![i] = rest, ![Right(i)] = Append(@, id)]
                      [] id <= i -> [inbox EXCEPT ![i] = rest]

Next == \E i \in Nodes : Start(i) \/ Take(i)

TypeOK ==
  /\ node \in [Nodes -> [state : {"candidate", "waiting", "lost", "leader"}, best : Nodes, seen : SUBSET Nodes]]
  /\ \A i \in Nodes : inbox[i] \in UNION {[1..n -> Nodes] : n \in 0..2}
  /\ inbox \in [Nodes -> UNION {[1..n -> Nodes] : n \in 0..2}]
OneLeader == Cardinality({i \in Nodes : node[i].state = "leader"}) <= 1
LeaderIsMax == \A i \in Nodes : node[i].state = "leader" => i = N /\ Sum(node[i].seen) <= Weight[N]
NoLeader == ~\E i \in DOMAIN node : node[i].state = "leader" /\ Sum({node[j].best : j \in Nodes}) = N
====
