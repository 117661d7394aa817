package record_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"linearize.example/traces"
	"linearize.example/traces/record"
)

// A program records its calls to EC2 and ELBv2 by one line more in its configuration.
func ExampleRecorder_APIOptions() {
	history, err := record.Open(record.Options{Dir: "/var/log/lbc-history"})
	if err != nil {
		log.Fatal(err)
	}
	defer history.Close()
	recorder := record.New(history, os.Getenv("POD_NAME"))

	var cfg aws.Config // of config.LoadDefaultConfig
	cfg.APIOptions = append(cfg.APIOptions, recorder.APIOptions()...)

	client := ec2.NewFromConfig(cfg)
	_, err = client.RevokeSecurityGroupIngress(context.Background(), &ec2.RevokeSecurityGroupIngressInput{GroupId: aws.String("sg-0aaa")})
	if err != nil {
		log.Print(err) // is in the history, too
	}
}

// A controller adds what it knows and its calls do not show.
func ExampleRecorder() {
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	history, err := record.Open(record.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	recorder := record.New(history, "lbc-1")
	recorder.OnError = func(err error) { log.Print("the recording: ", err) }

	recorder.Started("v3.4.0", "--sync-period=10h")
	recorder.LeaderElected()
	recorder.Reconciling("shop/web", "7f3a", "endpoints changed")
	recorder.CacheHit("sg-0aaa", 43*time.Second)
	wanted, err := record.Permissions([]ec2types.IpPermission{{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(3000), ToPort: aws.Int32(8025),
		UserIdGroupPairs: []ec2types.UserIdGroupPair{{GroupId: aws.String("sg-0ddd"), Description: aws.String("elbv2.k8s.aws/targetGroupBinding=shared")}}}})
	if err != nil {
		log.Fatal(err)
	}
	recorder.Wanted("shop/web", "sg-0aaa", wanted)
	recorder.Requeued("shop/web", 15*time.Second, errors.New("no security group of the pods"))
	if err := history.Close(); err != nil {
		log.Fatal(err)
	}

	f, err := os.Open(filepath.Join(dir, "history-000001.ndjson"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	h := &traces.History{Inputs: []traces.Input{{}}}
	if err := traces.ReadHistory(f, h, 0); err != nil {
		log.Fatal(err)
	}
	for _, ob := range h.Observations {
		fmt.Printf("%s %q %q %q\n", ob.Kind, ob.TGB, ob.Group, ob.Error)
	}
	// Output:
	// started "" "" ""
	// leader-elected "" "" ""
	// reconciling "shop/web" "" ""
	// cache-hit "" "sg-0aaa" ""
	// wanted "shop/web" "sg-0aaa" ""
	// requeued "shop/web" "" "no security group of the pods"
}

// What does not go through the SDK is recorded by hand: the call before it is sent, and its result before that is used.
func ExampleLog() {
	history, err := record.NewLog(os.Stdout, record.Options{
		Clock: "simulated", Now: func() time.Time { return time.Date(2026, 8, 28, 9, 20, 42, 0, time.UTC) },
	})
	if err != nil {
		log.Fatal(err)
	}
	call := traces.Operation{Process: "cleanup", Op: traces.DeleteSecurityGroup, Group: "sg-0aaa"}
	entry, err := history.Begin(call)
	if err != nil {
		log.Fatal(err) // an effect would go unrecorded
	}
	// Here the call is made, and answered.
	call.Outcome, call.Error, call.RequestID = traces.Failed, "DependencyViolation", "59dbff89-35bd-4eac-99ed-be587EXAMPLE"
	if err := entry.End(call); err != nil {
		log.Fatal(err)
	}
	if err := history.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"history":"v1","clock":"simulated"}
	// {"seq":1,"process":"cleanup","op":"DeleteSecurityGroup","groupId":"sg-0aaa","call":"2026-08-28T09:20:42Z"}
	// {"seq":1,"process":"cleanup","op":"DeleteSecurityGroup","groupId":"sg-0aaa","call":"2026-08-28T09:20:42Z","return":"2026-08-28T09:20:42Z","error":"DependencyViolation","requestId":"59dbff89-35bd-4eac-99ed-be587EXAMPLE"}
}
