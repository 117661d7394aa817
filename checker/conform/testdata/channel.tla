---- MODULE channel ----
(* Numbered messages over a lossy, reordering channel, with records, sets of records, sequences and a model value. *)
EXTENDS Integers, Sequences, FiniteSets
CONSTANTS Data, N, None
VARIABLES sent, net, got, last

Messages == [seq : 1..N, body : Data]
vars == <<sent, net, got, last>>

Init ==
  /\ sent = << >>
  /\ net = {}
  /\ got = << >>
  /\ last = None

Send ==
  /\ Len(sent) < N
  /\ \E d \in Data :
       LET m == [seq |-> Len(sent) + 1, body |-> d]
       IN /\ sent' = Append(sent, d)
          /\ net' = net \cup {m}
  /\ UNCHANGED <<got, last>>

Lose(m) ==
  /\ net' = net \ {m}
  /\ UNCHANGED <<sent, got, last>>

Receive ==
  \E m \in net :
    /\ m.seq = Len(got) + 1
    /\ got' = got \o <<m.body>>
    /\ last' = m
    /\ UNCHANGED <<sent, net>>

Resend ==
  /\ \E i \in 1..Len(sent) : net' = net \cup {[seq |-> i, body |-> sent[i]]}
  /\ UNCHANGED <<sent, got, last>>

Forget ==
  /\ last # None
  /\ last.seq > 1
  /\ last' = None
  /\ UNCHANGED <<sent, net, got>>

Next == Send \/ (\E m \in net : Lose(m)) \/ Receive \/ Resend \/ Forget

Prefix(s, t) == Len(s) <= Len(t) /\ \A i \in 1..Len(s) : s[i] = t[i]
Safe == Prefix(got, sent)
NotAll == Len(got) < N \/ Cardinality(net) > 0 \/ last = None
TypeOK ==
  /\ sent \in UNION {[1..n -> Data] : n \in 0..N}
  /\ net \in SUBSET Messages
  /\ got \in UNION {[1..n -> Data] : n \in 0..N}
  /\ last \in {None} \cup Messages
====
