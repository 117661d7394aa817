package cloudtrail

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linearize.example/traces"
)

// authorized is the event that most shapes below carry, revoked a second one that failed, listed one that is none of
// our business.
const (
	authorized = `{"eventVersion":"1.11","userIdentity":{"type":"AssumedRole","principalId":"AROA:one",` +
		`"arn":"arn:aws:sts::111122223333:assumed-role/lbc/one","accountId":"111122223333","accessKeyId":"ASIA1",` +
		`"sessionContext":{"sessionIssuer":{"type":"Role","userName":"lbc"},"attributes":{"creationDate":"2026-08-28T08:00:00Z"}}},` +
		`"eventTime":"2026-08-28T09:55:16Z","eventSource":"ec2.amazonaws.com","eventName":"AuthorizeSecurityGroupIngress",` +
		`"awsRegion":"us-east-1","sourceIPAddress":"10.0.0.1","userAgent":"elbv2.k8s.aws/v3.4.0","requestParameters":` +
		`{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":3000,"toPort":3008,"groups":{"items":` +
		`[{"groupId":"sg-2","description":"team=a,elbv2.k8s.aws/targetGroupBinding=shared"}]},"ipRanges":{},"ipv6Ranges":{},` +
		`"prefixListIds":{}}]}},"responseElements":{"requestId":"r-1","_return":true},"requestID":"r-1","eventID":"e-1",` +
		`"readOnly":false,"eventType":"AwsApiCall","managementEvent":true,"recipientAccountId":"111122223333","eventCategory":"Management"}`
	revoked = `{"eventVersion":"1.11","userIdentity":{"type":"AssumedRole","principalId":"AROA:one",` +
		`"arn":"arn:aws:sts::111122223333:assumed-role/lbc/one","accountId":"111122223333","accessKeyId":"ASIA1",` +
		`"sessionContext":{"sessionIssuer":{"type":"Role","userName":"lbc"},"attributes":{"creationDate":"2026-08-28T08:00:00Z"}}},` +
		`"eventTime":"2026-08-28T09:55:18Z","eventSource":"ec2.amazonaws.com","eventName":"RevokeSecurityGroupIngress",` +
		`"awsRegion":"us-east-1","sourceIPAddress":"10.0.0.1","userAgent":"elbv2.k8s.aws/v3.4.0",` +
		`"errorCode":"Client.InvalidPermission.NotFound","errorMessage":"The specified rule does not exist in this security group.",` +
		`"requestParameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":80,"toPort":80,` +
		`"groups":{"items":[{"userId":"111122223333","groupId":"sg-2"}]}}]}},"responseElements":null,"requestID":"r-2","eventID":"e-2",` +
		`"eventType":"AwsApiCall"}`
	listed = `{"eventVersion":"1.11","eventTime":"2026-08-28T09:55:18Z","eventSource":"s3.amazonaws.com","eventName":"ListBuckets",` +
		`"requestParameters":{"a":["}",{"b":"\"]}"}]},"eventID":"e-3","eventType":"AwsApiCall"}`
)

var (
	controller = &traces.Caller{Role: "lbc", Session: "one", Account: "111122223333", AccessKeyID: "ASIA1",
		SessionStart: "2026-08-28T08:00:00Z", UserAgent: "elbv2.k8s.aws/v3.4.0", SourceAddress: "10.0.0.1"}
	authorizedOperation = traces.Operation{
		ID: "e-1", EventID: "e-1", RequestID: "r-1", Process: "lbc/one", Op: traces.AuthorizeSecurityGroupIngress, Group: "sg-1",
		Permissions: []traces.Permission{permission("tcp", 3000, 3008, "sg-2", "team=a,elbv2.k8s.aws/targetGroupBinding=shared")},
		Outcome:     traces.Succeeded, After: -1, Caller: controller, Call: at("2026-08-28T09:55:16Z"), Return: at("2026-08-28T09:55:17Z") - 1,
	}
	revokedOperation = traces.Operation{
		ID: "e-2", EventID: "e-2", RequestID: "r-2", Process: "lbc/one", Op: traces.RevokeSecurityGroupIngress, Group: "sg-1",
		Permissions: []traces.Permission{permission("tcp", 80, 80, "sg-2", "")},
		Outcome:     traces.Failed, Error: "InvalidPermission.NotFound", After: -1, Caller: controller,
		Call: at("2026-08-28T09:55:18Z"), Return: at("2026-08-28T09:55:19Z") - 1,
	}
)

func permission(protocol string, from, to int32, source, description string) traces.Permission {
	return traces.Permission{Rule: traces.Rule{Protocol: protocol, FromPort: from, ToPort: to, Source: source}, Description: description}
}

func at(s string) traces.Instant {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return traces.At(t)
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func indented(s string) string {
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		panic(err)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(b)
}

func lookup(event, id, name string) string {
	return `{"EventId":"` + id + `","EventName":"` + name + `","ReadOnly":"false","AccessKeyId":"ASIA1","EventTime":1787997316.0,` +
		`"EventSource":"ec2.amazonaws.com","Username":"one","Resources":[],"CloudTrailEvent":` + quoted(event) + `}`
}

func bridge(event string) string {
	return `{"version":"0","id":"b-1","detail-type":"AWS API Call via CloudTrail","source":"aws.ec2","account":"111122223333",` +
		`"time":"2026-08-28T09:55:20Z","region":"us-east-1","resources":[],"detail":` + event + `}`
}

func utf16le(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func read(t *testing.T, input string, options Options) (*traces.History, error) {
	t.Helper()
	h := &traces.History{Inputs: []traces.Input{{Path: "input"}}}
	err := Read(strings.NewReader(input), h, 0, options)
	in := h.Inputs[0]
	if in.Records != in.Used+in.Duplicates+in.Irrelevant+in.Rejected {
		t.Errorf("the counts do not add up: %+v", in)
	}
	if in.Used != len(h.Operations) {
		t.Errorf("%d records used, but %d operations", in.Used, len(h.Operations))
	}
	return h, err
}

// printedByPython prints an event as Python prints the decoded JSON.
func printedByPython(event string) string {
	return strings.NewReplacer(`"`, `'`, `true`, `True`, `false`, `False`, `null`, `None`).Replace(event)
}

const athenaRow = `{"eventversion":"1.11","useridentity":"{type=AssumedRole, principalid=AROA:one, ` +
	`arn=arn:aws:sts::111122223333:assumed-role/lbc/one, accountid=111122223333, invokedby=null, accesskeyid=ASIA1, username=null, ` +
	`sessioncontext={attributes={mfaauthenticated=false, creationdate=2026-08-28T08:00:00Z}, sessionissuer={type=Role, username=lbc}}}",` +
	`"eventtime":"2026-08-28T09:55:16Z","eventsource":"ec2.amazonaws.com","eventname":"AuthorizeSecurityGroupIngress","awsregion":"us-east-1",` +
	`"sourceipaddress":"10.0.0.1","useragent":"elbv2.k8s.aws/v3.4.0","errorcode":"","errormessage":"null","requestparameters":%s,` +
	`"responseelements":"null","requestid":"r-1","eventid":"e-1","eventtype":"AwsApiCall"}`

const requestText = `{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":3000,"toPort":3008,"groups":{"items":` +
	`[{"groupId":"sg-2","description":"team=a,elbv2.k8s.aws/targetGroupBinding=shared"}]},"ipRanges":{},"ipv6Ranges":{},"prefixListIds":{}}]}}`

// lakeRequest is a map<string,string> as Lake prints it.
const lakeRequest = `{groupId=sg-1, ipPermissions={"items":[{"ipProtocol":"tcp","fromPort":3000,"toPort":3008,"groups":{"items":` +
	`[{"groupId":"sg-2","description":"team=a,elbv2.k8s.aws/targetGroupBinding=shared"}]},"ipRanges":{},"ipv6Ranges":{},"prefixListIds":{}}]}}`

func lakeCells(names bool) string {
	var cells []string
	for _, c := range [][2]string{
		{"eventID", "e-1"}, {"eventName", "AuthorizeSecurityGroupIngress"}, {"eventSource", "ec2.amazonaws.com"},
		{"eventTime", "2026-08-28 09:55:16.000"}, {"requestID", "r-1"}, {"sourceIPAddress", "10.0.0.1"}, {"userAgent", "elbv2.k8s.aws/v3.4.0"},
		{"errorCode", "null"}, {"requestParameters", lakeRequest},
		{"userIdentity", `{type=AssumedRole, arn=arn:aws:sts::111122223333:assumed-role/lbc/one, accountid=111122223333, accesskeyid=ASIA1, ` +
			`sessioncontext={attributes={creationdate=2026-08-28T08:00:00Z, mfaauthenticated=false}}}`},
	} {
		if names {
			cells = append(cells, fmt.Sprintf(`{"field":%s,"value":%s}`, quoted(c[0]), quoted(c[1])))
		} else {
			cells = append(cells, fmt.Sprintf(`{%s:%s}`, quoted(c[0]), quoted(c[1])))
		}
	}
	return "[" + strings.Join(cells, ",") + "]"
}

func csvCell(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func athenaCSV() string {
	var row map[string]string
	if err := json.Unmarshal([]byte(fmt.Sprintf(athenaRow, quoted(requestText))), &row); err != nil {
		panic(err)
	}
	var names, cells []string
	for _, name := range []string{"eventversion", "useridentity", "eventtime", "eventsource", "eventname", "awsregion", "sourceipaddress",
		"useragent", "errorcode", "errormessage", "requestparameters", "responseelements", "requestid", "eventid", "eventtype"} {
		names = append(names, csvCell(name))
		cells = append(cells, csvCell(row[name]))
	}
	return strings.Join(names, ",") + "\n" + strings.Join(cells, ",") + "\n"
}

func athenaAPI() string {
	cells := func(values ...string) string {
		var b []string
		for _, v := range values {
			b = append(b, `{"VarCharValue":`+quoted(v)+`}`)
		}
		return `{"Data":[` + strings.Join(b, ",") + `]}`
	}
	return `{"UpdateCount":0,"ResultSet":{"Rows":[` +
		cells("eventname", "eventsource", "eventtime", "eventid", "requestid", "requestparameters", "useridentity", "useragent", "sourceipaddress") + "," +
		cells("AuthorizeSecurityGroupIngress", "ec2.amazonaws.com", "2026-08-28T09:55:16Z", "e-1", "r-1", requestText,
			"{type=AssumedRole, arn=arn:aws:sts::111122223333:assumed-role/lbc/one, accesskeyid=ASIA1, sessioncontext={attributes={creationdate=2026-08-28T08:00:00Z}}}",
			"elbv2.k8s.aws/v3.4.0", "10.0.0.1") + `],"ResultSetMetadata":{"ColumnInfo":[]}}}`
}

const elasticFlat = `{"_index":"logs","_source":{"@timestamp":"2026-08-28T09:55:16.000Z","event":{"action":"AuthorizeSecurityGroupIngress",` +
	`"provider":"ec2.amazonaws.com","id":"e-1","outcome":"success"},"aws":{"cloudtrail":{"event_type":"AwsApiCall","request_id":"r-1",` +
	`"user_identity":{"type":"AssumedRole","arn":"arn:aws:sts::111122223333:assumed-role/lbc/one","access_key_id":"ASIA1",` +
	`"session_context":{"creation_date":"2026-08-28T08:00:00Z","session_issuer":{"user_name":"lbc"}}},%s}},` +
	`"source":{"address":"10.0.0.1"},"user_agent":{"original":"elbv2.k8s.aws/v3.4.0"},"cloud":{"account":{"id":"111122223333"}}}}`

const ocsf = `{"class_uid":6003,"class_name":"API Activity","time":1787910916000,"metadata":{"uid":"e-1","event_code":"AwsApiCall"},` +
	`"api":{"operation":"AuthorizeSecurityGroupIngress","service":{"name":"ec2.amazonaws.com"},"request":{"uid":"r-1","data":%s},"response":null},` +
	`"actor":{"user":{"type":"AssumedRole","uid":"arn:aws:sts::111122223333:assumed-role/lbc/one","credential_uid":"ASIA1","account":{"uid":"111122223333"}},` +
	`"session":{"created_time_dt":"2026-08-28T08:00:00Z","issuer":"arn:aws:iam::111122223333:role/lbc"}},` +
	`"src_endpoint":{"ip":"10.0.0.1"},"http_request":{"user_agent":"elbv2.k8s.aws/v3.4.0"},"status":"Success","status_id":1}`

// TestShapes reads the same event in every shape, and expects the same operation.
func TestShapes(t *testing.T) {
	one := []traces.Operation{authorizedOperation}
	two := []traces.Operation{authorizedOperation, revokedOperation}
	for _, test := range []struct {
		name, input, format string
		want                []traces.Operation
		records             int
	}{
		{"S3 log file", `{"Records":[` + listed + "," + authorized + "," + revoked + "," + listed + `]}`, "cloudtrail", two, 4},
		{"S3 log files one behind the other", `{"Records":[` + authorized + `]}{"Records":[` + listed + "," + revoked + `]}`, "cloudtrail", two, 3},
		{"S3 log files in a list", `[{"Records":[` + authorized + `]},{"Records":[` + revoked + `]}]`, "cloudtrail", two, 2},
		{"lookup-events", `{"Events":[` + lookup(revoked, "e-2", "RevokeSecurityGroupIngress") + "," + lookup(authorized, "e-1", "AuthorizeSecurityGroupIngress") + `]}`,
			"cloudtrail/lookup-events", []traces.Operation{revokedOperation, authorizedOperation}, 2},
		{"lookup-events, entry by entry", lookup(authorized, "e-1", "x") + "\n" + lookup(revoked, "e-2", "x") + "\n", "cloudtrail/lookup-events", two, 2},
		{"events, line by line", authorized + "\n" + listed + "\n" + revoked + "\n", "cloudtrail", two, 3},
		{"events as strings, line by line", quoted(authorized) + "\n" + quoted(revoked) + "\n", "cloudtrail", two, 2},
		{"list of strings", `[` + quoted(authorized) + `,` + quoted(revoked) + `]`, "cloudtrail", two, 2},
		{"lookup-events as text", "EVENTS\tASIA1\t" + authorized + "\te-1\tAuthorizeSecurityGroupIngress\tec2.amazonaws.com\nRESOURCES\tAWS::EC2::SecurityGroup\tsg-1\n",
			"cloudtrail", one, 1},
		{"EventBridge", bridge(authorized) + "\n" + bridge(revoked), "cloudtrail/eventbridge", two, 2},
		{"EventBridge through SNS to Lambda", `{"Records":[{"EventSource":"aws:sns","EventVersion":"1.0","Sns":{"Type":"Notification","Message":` +
			quoted(bridge(authorized)) + `}}]}`, "cloudtrail/eventbridge", one, 1},
		{"EventBridge through SQS to Lambda", `{"Records":[{"messageId":"m","eventSource":"aws:sqs","body":` + quoted(bridge(authorized)) + `}]}`,
			"cloudtrail/eventbridge", one, 1},
		{"EventBridge through SNS and SQS", `{"Messages":[{"MessageId":"m","Body":` + quoted(`{"Type":"Notification","Message":`+quoted(bridge(authorized))+`}`) + `}]}`,
			"cloudtrail/eventbridge", one, 1},
		{"EventBridge as Lambda prints it", printedByPython(bridge(authorized)) + "\n" + printedByPython(bridge(revoked)) + "\n", "cloudtrail/eventbridge", two, 2},
		{"EventBridge in a Lambda's log", `{"events":[{"logStreamName":"s","timestamp":1,"message":` + quoted("[INFO]\t2026-08-28T09:55:20Z\tid\t"+printedByPython(bridge(authorized))) +
			`,"eventId":"56"}],"searchedLogStreams":[]}`, "cloudtrail/eventbridge", one, 1},
		{"CloudWatch Logs", `{"events":[{"logStreamName":"s","timestamp":1787997316123,"message":` + quoted(authorized) + `,"ingestionTime":1,"eventId":"56"}],"searchedLogStreams":[]}`,
			"cloudtrail/logs", one, 1},
		{"CloudWatch Logs subscription", `{"messageType":"DATA_MESSAGE","logEvents":[{"id":"1","timestamp":1,"message":` + quoted(authorized) + `}]}`, "cloudtrail/logs", one, 1},
		{"Logs Insights", `{"results":[[{"field":"@timestamp","value":"x"},{"field":"@message","value":` + quoted(authorized) + `},{"field":"@ptr","value":"p"}]],"status":"Complete"}`,
			"cloudtrail/logs-insights", one, 1},
		{"Logs Insights, whole events in fields", `{"results":[` + lakeCells(true) + `],"status":"Complete"}`, "cloudtrail/logs-insights", one, 1},
		{"Lake", `{"QueryStatus":"FINISHED","QueryStatistics":{"ResultsCount":1},"QueryResultRows":[` + lakeCells(false) + `]}`, "cloudtrail/lake", one, 1},
		{"Athena, JSON rows", fmt.Sprintf(athenaRow, quoted(requestText)) + "\n", "cloudtrail", one, 1},
		{"Athena, CSV", athenaCSV(), "cloudtrail/athena", one, 1},
		{"Athena, get-query-results", athenaAPI(), "cloudtrail/athena", one, 2},
		{"console, JSON", `{"Records":[` + authorized + `]}`, "cloudtrail", one, 1},
		{"Splunk", `{"preview":false,"offset":0,"result":{"_raw":` + quoted(authorized) + `,"_time":"x"}}` + "\n" +
			`{"preview":false,"offset":1,"lastrow":true,"result":{"_raw":` + quoted(revoked) + `}}`, "cloudtrail/splunk", two, 2},
		{"Splunk, CSV", "_raw,_time\n" + csvCell(authorized) + ",x\n", "cloudtrail/splunk", one, 1},
		{"Elastic, original", `{"hits":{"total":{"value":1},"hits":[{"_source":{"event":{"original":` + quoted(authorized) + `,"action":"x"},"aws":{"cloudtrail":{}}}}]}}`,
			"cloudtrail/elastic", one, 1},
		{"Elastic, dotted", `{"event.original":` + quoted(authorized) + `,"@timestamp":"2026-08-28T09:55:16.000Z"}`, "cloudtrail/elastic", one, 1},
		{"Elastic, flattened", fmt.Sprintf(elasticFlat, `"flattened":{"request_parameters":{"groupId":"sg-1","ipPermissions":{"items":[{"ipProtocol":"tcp","fromPort":3000,`+
			`"toPort":3008,"groups":{"items":[{"groupId":"sg-2","description":"team=a,elbv2.k8s.aws/targetGroupBinding=shared"}]}}]}}}`), "cloudtrail/elastic", one, 1},
		{"Elastic, printed map", fmt.Sprintf(elasticFlat, `"request_parameters":`+quoted(`{groupId=sg-1, ipPermissions={items=[{ipProtocol=tcp, fromPort=3000, toPort=3008, `+
			`groups={items=[{groupId=sg-2, description=team=a,elbv2.k8s.aws/targetGroupBinding=shared}]}, ipRanges={}}]}}`)), "cloudtrail/elastic", one, 1},
		{"Logstash", strings.Replace(authorized, `"eventTime":"2026-08-28T09:55:16Z"`, `"@timestamp":"2026-08-28T09:55:16.000Z","@version":"1"`, 1),
			"cloudtrail/logstash", one, 1},
		{"Wazuh", `{"timestamp":"x","rule":{"id":"80202"},"data":{"integration":"aws","aws":` + strings.NewReplacer(
			`{"items":[{"groupId"`, `{"items":{"groupId"`, `shared"}]}`, `shared"}}`, `"items":[{"ipProtocol"`, `"items":{"ipProtocol"`,
			`"prefixListIds":{}}]}`, `"prefixListIds":{}}}`, `true`, `"true"`).Replace(authorized) + `}}`, "cloudtrail/wazuh", one, 1},
		{"Panther", strings.NewReplacer(`{"eventVersion"`, `{"p_log_type":"AWS.CloudTrail","eventVersion"`, `3000`, `"3000"`, `3008`, `"3008"`,
			`accountId`, `accountid`, `accessKeyId`, `accesskeyid`, `sessionContext`, `sessioncontext`, `sessionIssuer`, `sessionissuer`, `userName`, `username`,
			`creationDate`, `creationdate`, `"eventTime":"2026-08-28T09:55:16Z"`, `"eventTime":"2026-08-28 09:55:16.000"`).Replace(authorized), "cloudtrail/panther", one, 1},
		{"OCSF", fmt.Sprintf(ocsf, quoted(requestText)), "cloudtrail/ocsf", one, 1},
		{"bare list", `[` + authorized + `,` + revoked + `]`, "cloudtrail", two, 2},
		{"single event, indented", indented(authorized), "cloudtrail", one, 1},
		{"several events, indented", indented(authorized) + "\n" + indented(listed) + "\n" + indented(revoked), "cloudtrail", two, 3},
		{"several events with commas", indented(authorized) + ",\n" + indented(revoked) + ",\n", "cloudtrail", two, 2},
		{"byte order mark", "\ufeff" + authorized, "cloudtrail", one, 1},
		{"UTF-16", utf16le(`{"Records":[` + authorized + `]}`), "cloudtrail", one, 1},
		{"names in escapes", authorizedWithEscapes, "cloudtrail", one, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, err := read(t, test.input, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, h.Operations, cmpopts.IgnoreFields(traces.Operation{}, "Sources")); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			in := h.Inputs[0]
			if in.Format != test.format || in.Records != test.records || in.Rejected != 0 || len(in.Notes) > 0 {
				t.Errorf("got %+v, want format %s and %d records, none rejected", in, test.format, test.records)
			}
			if !Sniff([]byte(test.input)) && test.name != "UTF-16" {
				t.Error("Sniff does not know it")
			}
		})
	}
}

var authorizedWithEscapes = listed + "\n" + strings.NewReplacer("AuthorizeSecurityGroupIngress", `\u0041uthorize\u0053ecurity\u0047roupIngress`).Replace(authorized)
