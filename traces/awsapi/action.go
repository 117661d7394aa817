package awsapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"linearize.example/traces"
)

// request is one call that a world is about to answer.
type request struct {
	*World
	call *Call
	p    *params
	// x is the answer's content.
	x *writer
	// now is when the call takes effect, visible when describes show that.
	now, visible traces.Instant
	conditions   conditions
}

// action is one call that a world answers: the parameters that it knows, besides those of every call, and the function
// that carries it out and writes the answer. An error changes nothing; it is a *Refusal.
type action struct {
	// lag names the kind of mutation, for Faults.ReadLag; "" for a describe.
	lag    string
	params string
	do     func(r *request) error
}

// actions are all that a world answers, by service and name.
var actions = func() map[string]map[string]action {
	all := map[string]map[string]action{EC2: {}, ELBv2: {}}
	for _, list := range []map[string]action{ruleActions, groupActions, tagActions, networkActions} {
		for name, a := range list {
			all[EC2][name] = a
		}
	}
	for name, a := range targetActions {
		all[ELBv2][name] = a
	}
	return all
}()

// common are the parameters that every call may have; the last ones belong to signatures of version 2.
var common = strings.Fields("Action Version DryRun " +
	"AWSAccessKeyId Signature SignatureMethod SignatureVersion Timestamp Expires SecurityToken")

// apply carries out a call at an instant. It depends on nothing but the world, the instant, the call and the conditions.
func (w *World) apply(now traces.Instant, c *Call, on conditions) *Answer {
	w.now = max(w.now, now)
	id := c.ID
	if id == "" {
		id = w.requestID()
	}
	refuse := func(r *Refusal) *Answer {
		return ErrorAnswer(c.Service, r.Code, r.Message).WithRequestID(c.Service, id)
	}
	a, known := actions[c.Service][c.Action]
	if !known {
		return refuse(&Refusal{"InvalidAction", fmt.Sprintf("The action %s is not valid for this web service.", c.Action)})
	}
	r := &request{World: w, call: c, p: c.params(), x: newXML(), now: w.now, visible: w.now.Add(on.lag), conditions: on}
	if err := r.parameters(a.params); err != nil {
		return refuse(err)
	}
	namespace := ` xmlns="http://ec2.amazonaws.com/doc/` + ec2Version + `/"`
	if c.Service == ELBv2 {
		namespace = ` xmlns="http://elasticloadbalancing.amazonaws.com/doc/` + elbVersion + `/"`
	}
	r.x.open(c.Action + "Response" + namespace)
	if c.Service == ELBv2 {
		r.x.open(c.Action + "Result")
	} else {
		r.x.text("requestId", id)
	}
	if r.p.flag("DryRun") && c.Service == EC2 {
		return refuse(&Refusal{Code: "DryRunOperation"})
	}
	if err := a.do(r); err != nil {
		refusal, ok := err.(*Refusal)
		if !ok {
			refusal = &Refusal{"InvalidParameterValue", err.Error()}
		}
		return refuse(refusal)
	}
	if c.Service == ELBv2 {
		r.x.close(c.Action + "Result")
		r.x.open("ResponseMetadata")
		r.x.text("RequestId", id)
		r.x.close("ResponseMetadata")
	}
	r.x.close(c.Action + "Response")
	return &Answer{Status: http.StatusOK, Body: r.x.b, RequestID: id}
}

// requestID makes a request id in AWS's form.
func (w *World) requestID() string {
	w.serial++
	a, b := mix(uint64(w.serial)), mix(^uint64(w.serial))
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// parameters refuses what the action does not know, as EC2 does.
func (r *request) parameters(known string) *Refusal {
	var unknown []string
	for name := range r.p.children {
		if !slices.Contains(common, name) && !slices.Contains(strings.Fields(known), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return &Refusal{"UnknownParameter", fmt.Sprintf("The parameter %s is not recognized", unknown[0])}
}

// The refusals that several actions have.

func missing(parameter string) *Refusal {
	return &Refusal{"MissingParameter", "The request must contain the parameter " + parameter}
}

func invalid(format string, args ...any) *Refusal {
	return &Refusal{"InvalidParameterValue", fmt.Sprintf(format, args...)}
}

func combination(format string, args ...any) *Refusal {
	return &Refusal{"InvalidParameterCombination", fmt.Sprintf(format, args...)}
}

// listed is one thing that a describe may show. Its key orders it among its like.
type listed struct {
	key   int
	write func(x *writer)
}

// page writes what a describe shows as one list: as much as MaxResults says, from where NextToken says. A token holds the
// key of the last thing shown, so that it stays good when things come and go.
func (r *request) page(list string, all []listed) error {
	after, limit := -1, len(all)
	if n, err := r.p.integer("MaxResults"); err != nil {
		return err
	} else if n != nil {
		if *n < 5 || *n > 1000 {
			return invalid("Value ( %d ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.", *n)
		}
		limit = int(*n)
	}
	if token := r.p.text("NextToken"); token != "" {
		last, err := readToken(token)
		if err != nil {
			return &Refusal{"InvalidNextToken", "The token '" + token + "' is invalid"}
		}
		after = last
	}
	first := slices.IndexFunc(all, func(l listed) bool { return l.key > after })
	if first < 0 {
		first = len(all)
	}
	rest := all[first:]
	shown := rest[:min(limit, len(rest))]
	r.x.list(list, "item", len(shown), func(i int) { shown[i].write(r.x) })
	if len(shown) < len(rest) {
		r.x.text("nextToken", makeToken(shown[len(shown)-1].key))
	}
	return nil
}

func makeToken(key int) string {
	return base64.StdEncoding.EncodeToString([]byte("after:" + strconv.Itoa(key)))
}

func readToken(token string) (int, error) {
	text, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimPrefix(string(text), "after:"))
}
