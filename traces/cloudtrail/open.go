package cloudtrail

import "strings"

// maxWraps bounds how often an event may be wrapped: text in a log event in a notification in a queue's message is four.
const maxWraps = 16

// wrappers are the members in which an event is carried, as an object or as text: Splunk, Elastic, Wazuh, Lambda's
// records from SNS and SQS, SQS's own answer, SNS's notification, EventBridge, CloudWatch Logs, loggers.
var wrappers = []string{"_raw", "result", "_source", "@message", "Sns", "body", "Body", "Message", "message", "detail", "data", "aws",
	"event", "log", "record"}

// open looks for CloudTrail events in a decoded value and uses them. It returns why it found none, or "" where the value
// was recognized as something that holds none. format names the shape that was recognized on the way.
func (rd *reading) open(v any, format string, depth int) (reason string) {
	if depth > maxWraps {
		return "wraps something too often"
	}
	switch v := v.(type) {
	case string:
		inner, ok := parseMessage(v)
		if !ok {
			return "is text without an event in it"
		}
		return rd.open(inner, format, depth+1)
	case []any:
		if row, shape := mergeRow(v); row != nil {
			return rd.openObject(row, shape, depth+1)
		}
		if len(v) == 0 {
			return "is an empty list"
		}
		for _, element := range v {
			rd.use(element, format, depth+1)
		}
		return ""
	case map[string]any:
		return rd.openObject(v, format, depth)
	}
	return "is no object"
}

func (rd *reading) openObject(o object, format string, depth int) (reason string) {
	for _, quoted := range containerKeys {
		if records, ok := o[strings.Trim(quoted, `"`)].([]any); ok && len(records) > 0 && !o.has("eventName") {
			for _, record := range records {
				rd.use(record, format, depth+1)
			}
			return ""
		}
	}
	if cells, ok := o["Data"].([]any); ok && depth == 0 {
		return rd.openCells(cells)
	}
	if inner, ok := o["CloudTrailEvent"].(string); ok {
		return rd.open(inner, "cloudtrail/lookup-events", depth+1)
	}
	switch {
	case o.has("digestStartTime") && !o.has("eventName"):
		rd.recognized = true
		rd.counts.digests++
		return ""
	case o.has("insightDetails") || text(o.get("eventType")) == "AwsCloudTrailInsight":
		rd.recognized = true
		rd.counts.insights++
		return ""
	case isEvent(o):
		return rd.event(o, eventFormat(o, format))
	}
	if original, ok := o.dig("event.original").(string); ok {
		if reason := rd.open(original, "cloudtrail/elastic", depth+1); reason == "" {
			return ""
		}
	}
	if e := fromElastic(o); e != nil {
		return rd.event(e, "cloudtrail/elastic")
	}
	if e := fromOCSF(o); e != nil {
		return rd.event(e, "cloudtrail/ocsf")
	}
	return rd.openWrapper(o, format, depth)
}

// openWrapper tries the members that may carry an event.
func (rd *reading) openWrapper(o object, format string, depth int) (reason string) {
	before := rd.in.Records
	tried := false
	for _, name := range wrappers {
		inner, ok := o[name]
		if !ok {
			continue
		}
		if s, isText := inner.(string); isText {
			if inner, ok = parseMessage(s); !ok {
				continue
			}
		} else if m, isObject := inner.(map[string]any); !isObject || len(m) == 0 {
			continue
		}
		tried = true
		r := rd.open(inner, wrapperFormat(o, name, format), depth+1)
		if r == "" || rd.in.Records > before {
			return r
		}
		if reason == "" {
			reason = r
		}
	}
	source := o.text("eventSource")
	switch {
	case strings.HasPrefix(source, "aws:"), o.has("s3Bucket") && o.has("s3ObjectKey"):
		rd.counts.notifications++
		return ""
	case o.has("EventId") && o.has("EventName"):
		return "an entry of lookup-events without its CloudTrailEvent, which holds what was asked for; export it whole"
	case hasFlattened(o):
		return "a Splunk export without _raw has lost which port belongs to which source; export _raw"
	case o.has("eventName") && source == "":
		return "has an eventName but no eventSource; select whole events (eventID, eventTime, eventSource, eventName, errorCode, userIdentity, requestParameters, responseElements)"
	case o.has("eventName"):
		return "its eventSource " + source + " is no AWS service's"
	case o.has("Event name") || o.has("Event time"):
		return consoleCSV
	case tried && reason != "":
		return reason
	}
	return "is no CloudTrail event: it has no eventName and eventSource"
}

// isEvent reports whether an object is an event as CloudTrail writes it, up to the case of names.
func isEvent(o object) bool {
	source := o.text("eventSource")
	return o.text("eventName") != "" && (strings.HasSuffix(source, ".amazonaws.com") || strings.HasSuffix(source, ".amazonaws.com.cn")) &&
		o.get("CloudTrailEvent") == nil && !(o.has("EventId") && !o.has("requestParameters") && !o.has("userIdentity"))
}

// eventFormat names the shape of a bare event by what exporters add to it.
func eventFormat(o object, format string) string {
	switch {
	case format != "":
		return format
	case o.has("p_log_type") || o.has("p_event_time"):
		return "cloudtrail/panther"
	case o.has("@timestamp") && !o.has("eventTime"):
		return "cloudtrail/logstash"
	}
	return "cloudtrail"
}

func wrapperFormat(o object, name, format string) string {
	switch name {
	case "detail":
		return "cloudtrail/eventbridge"
	case "_raw":
		return "cloudtrail/splunk"
	case "@message":
		return "cloudtrail/logs-insights"
	case "message":
		if o.has("ingestionTime") || o.has("logStreamName") || o.has("timestamp") {
			return "cloudtrail/logs"
		}
	case "aws":
		return "cloudtrail/wazuh"
	}
	return format
}

// hasFlattened reports whether lists inside of the event were pulled apart into lists of single values.
func hasFlattened(o object) bool {
	for name := range o {
		if strings.Contains(name, "{}") {
			return true
		}
	}
	return false
}

// parseMessage reads the event in a text: JSON, JSON in a JSON string, or a Python dict, behind whatever a logger put
// in front of it.
func parseMessage(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, false
	}
	if s[0] == '"' || s[0] == '[' {
		if v, err := decode([]byte(s)); err == nil {
			return v, true
		}
	}
	i := strings.IndexByte(s, '{')
	if i < 0 {
		return nil, false
	}
	s = s[i:]
	if isPython([]byte(s[:min(len(s), 64)])) {
		v, _, err := parsePython(s)
		return v, err == nil
	}
	v, _, err := decodePrefix([]byte(s))
	return v, err == nil
}

// mergeRow makes one object of a row that is a list: of {"field":…,"value":…} (Logs Insights), or of objects with one
// member each (Lake). It returns nil for other lists.
func mergeRow(cells []any) (row object, format string) {
	row = object{}
	for _, cell := range cells {
		m, ok := cell.(map[string]any)
		if !ok {
			return nil, ""
		}
		field, hasField := m["field"].(string)
		value, hasValue := m["value"]
		switch {
		case hasField && hasValue && len(m) == 2 && format != "cloudtrail/lake":
			row[field] = value
			format = "cloudtrail/logs-insights"
		case len(m) == 1 && format != "cloudtrail/logs-insights":
			for name, value := range m {
				row[name] = value
			}
			format = "cloudtrail/lake"
		default:
			return nil, ""
		}
	}
	if format == "cloudtrail/lake" && len(row) == 1 {
		return nil, "" // a list of one object with one member is no row
	}
	if len(row) == 0 {
		return nil, ""
	}
	return row, format
}

// openCells uses one row of Athena's get-query-results: {"Data":[{"VarCharValue":…},…]}. The first row names the columns.
func (rd *reading) openCells(cells []any) (reason string) {
	values := make([]any, len(cells))
	for i, cell := range cells {
		m, _ := cell.(map[string]any)
		values[i] = m["VarCharValue"]
	}
	if rd.columns == nil {
		for _, v := range values {
			rd.columns = append(rd.columns, text(v))
		}
		return ""
	}
	row := object{}
	for i, v := range values {
		if i < len(rd.columns) {
			row[rd.columns[i]] = v
		}
	}
	return rd.openObject(row, "cloudtrail/athena", 1)
}

// fromElastic rebuilds an event from the fields of Elastic's cloudtrail module, for hits without event.original. The
// flattened parameters have lost empty lists, which mean nothing; without them the printed map is all there is.
func fromElastic(o object) object {
	if o.dig("aws.cloudtrail") == nil && !hasPrefix(o, "aws.cloudtrail.") {
		return nil
	}
	if m, ok := o["_source"].(map[string]any); ok {
		return fromElastic(m)
	}
	first := func(paths ...string) any {
		for _, path := range paths {
			if v := o.dig(path); v != nil {
				if l, ok := v.([]any); ok && len(l) == 1 { // exports of fields make lists of everything
					v = l[0]
				}
				return v
			}
		}
		return nil
	}
	identity := map[string]any{
		"type": first("aws.cloudtrail.user_identity.type"), "arn": first("aws.cloudtrail.user_identity.arn"),
		"accessKeyId": first("aws.cloudtrail.user_identity.access_key_id"), "userName": first("user.name"),
		"principalId": first("user.id"), "invokedBy": first("aws.cloudtrail.user_identity.invoked_by"),
		"accountId": first("cloud.account.id", "aws.cloudtrail.recipient_account_id"),
		"sessionContext": map[string]any{
			"attributes":    map[string]any{"creationDate": first("aws.cloudtrail.user_identity.session_context.creation_date")},
			"sessionIssuer": map[string]any{"userName": first("aws.cloudtrail.user_identity.session_context.session_issuer.user_name")},
		},
	}
	event := object{
		"eventName": first("event.action"), "eventSource": first("event.provider"), "eventID": first("event.id"),
		"eventTime": first("@timestamp"), "eventType": first("aws.cloudtrail.event_type"),
		"errorCode": first("aws.cloudtrail.error_code"), "errorMessage": first("aws.cloudtrail.error_message"),
		"requestID": first("aws.cloudtrail.request_id"), "userIdentity": identity,
		"sourceIPAddress": first("source.address", "source.ip"), "userAgent": first("user_agent.original"),
		"requestParameters": first("aws.cloudtrail.flattened.request_parameters", "aws.cloudtrail.request_parameters"),
		"responseElements":  first("aws.cloudtrail.flattened.response_elements", "aws.cloudtrail.response_elements"),
	}
	if event["errorCode"] == nil && text(first("event.outcome")) == "failure" {
		event["errorCode"] = "unknown"
	}
	if !isEvent(event) {
		return nil
	}
	return event
}

func hasPrefix(o object, prefix string) bool {
	for name := range o {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// fromOCSF rebuilds an event from OCSF's class API Activity (Security Lake).
func fromOCSF(o object) object {
	if o.get("class_uid") == nil || o.dig("api.operation") == nil {
		return nil
	}
	event := object{
		"eventName": o.dig("api.operation"), "eventSource": o.dig("api.service.name"), "eventID": o.dig("metadata.uid"),
		"eventTime": o.get("time"), "eventType": o.dig("metadata.event_code"), "requestID": o.dig("api.request.uid"),
		"errorCode": o.dig("api.response.error"), "errorMessage": o.dig("api.response.message"),
		"requestParameters": o.dig("api.request.data"), "responseElements": o.dig("api.response.data"),
		"sourceIPAddress": o.dig("src_endpoint.ip"), "userAgent": o.dig("http_request.user_agent"),
		"userIdentity": map[string]any{
			"type": o.dig("actor.user.type"), "arn": o.dig("actor.user.uid"), "accountId": o.dig("actor.user.account.uid"),
			"userName": o.dig("actor.user.name"), "accessKeyId": o.dig("actor.user.credential_uid"),
			"invokedBy": o.dig("actor.invoked_by"),
			"sessionContext": map[string]any{
				"attributes":    map[string]any{"creationDate": o.dig("actor.session.created_time_dt")},
				"sessionIssuer": map[string]any{"arn": o.dig("actor.session.issuer")},
			},
		},
	}
	if text(event["errorCode"]) == "" && (strings.EqualFold(o.text("status"), "failure") || o.text("status_id") == "2") {
		event["errorCode"] = "unknown"
	}
	if source := text(event["eventSource"]); source != "" && !strings.Contains(source, ".") {
		event["eventSource"] = source + ".amazonaws.com"
	}
	if !isEvent(event) {
		return nil
	}
	return event
}
