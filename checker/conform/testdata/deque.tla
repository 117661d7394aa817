---- MODULE deque ----
(* A double-ended queue of jobs, each a tuple of an owner and a size, that is cut, turned, merged and sorted: sequences with
   Append, Head, Tail, SubSeq, SelectSeq, \o, DOMAIN and EXCEPT, operators that recurse over them, and weak and strong
   fairness. *)
EXTENDS Integers, Sequences, FiniteSets
CONSTANTS Owners, Sizes, Max
VARIABLES line, done, best

Jobs == Owners \X Sizes
vars == <<line, done, best>>

RECURSIVE Total(_)
Total(s) == IF s = << >> THEN 0 ELSE Head(s)[2] + Total(Tail(s))

RECURSIVE Turned(_)
Turned(s) == IF Len(s) < 2 THEN s ELSE Append(Turned(Tail(s)), Head(s))

Last(s) == s[Len(s)]
Front(s) == SubSeq(s, 1, Len(s) - 1)
Of(o, s) == SelectSeq(s, LAMBDA j : j[1] = o)
Swapped(s, i) == [s EXCEPT ![i] = s[i + 1], ![i + 1] = s[i]]
Unsorted(s) == {i \in 1..(Len(s) - 1) : s[i][2] > s[i + 1][2]}

Init == line = << >> /\ done = << >> /\ best = 0

Push ==
  /\ Len(line) < Max
  /\ \E j \in Jobs : line' = Append(line, j) \/ line' = <<j>> \o line
  /\ UNCHANGED <<done, best>>

Pop ==
  /\ line # << >>
  /\ LET j == Head(line) IN
       /\ done' = IF Len(done) = 2 THEN Append(Tail(done), j[2]) ELSE Append(done, j[2])
       /\ best' = IF j[2] > best THEN j[2] ELSE best
  /\ line' = Tail(line)

Drop ==
  /\ Len(line) > 1
  /\ Last(line)[2] < Total(Front(line))
  /\ line' = Front(line)
  /\ UNCHANGED <<done, best>>

Turn == line # Turned(line) /\ line' = Turned(line) /\ UNCHANGED <<done, best>>

Sort ==
  /\ \E i \in Unsorted(line) : line' = Swapped(line, i)
  /\ UNCHANGED <<done, best>>

Clear(o) ==
  /\ Of(o, line) # << >>
  /\ line' = SelectSeq(line, LAMBDA j : j[1] # o)
  /\ done' = IF done = << >> THEN done ELSE SubSeq(done, 1, 1)
  /\ UNCHANGED best

Grow ==
  /\ \E i \in DOMAIN line :
       /\ line[i][2] + 1 \in Sizes
       /\ line' = [line EXCEPT ![i] = <<@[1], @[2] + 1>>]
  /\ UNCHANGED <<done, best>>

Next == Push \/ Pop \/ Drop \/ Turn \/ Sort \/ (\E o \in Owners : Clear(o)) \/ Grow
Spec == Init /\ [][Next]_vars /\ WF_vars(Pop) /\ SF_vars(Sort)

TypeOK ==
  /\ line \in UNION {[1..n -> Jobs] : n \in 0..Max}
  /\ done \in UNION {[1..n -> Sizes] : n \in 0..2}
  /\ best \in {0} \cup Sizes
Best == \A i \in 1..Len(done) : done[i] <= best
Unfair == ~(Len(line) = Max /\ \A i \in DOMAIN line : line[i] = line[1])
Emptied == []<>(line = << >>)
====
