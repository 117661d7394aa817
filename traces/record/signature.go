package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signingAlgorithm is the only one that EC2 and ELBv2 accept of one region's keys.
const signingAlgorithm = "AWS4-HMAC-SHA256"

// signingTime is how x-amz-date is written.
const signingTime = "20060102T150405Z"

// maxSkew is how far a signature's time may be from the endpoint's (AWS: IAM User Guide, "Elements of an AWS API request
// signature": within 15 minutes).
const maxSkew = 15 * time.Minute

// maxExpires bounds X-Amz-Expires of a presigned request: seven days, as AWS has it.
const maxExpires = 7 * 24 * time.Hour

// refusal says why a request is not let in.
type refusal int

const (
	notSigned      refusal = iota // no signature at all
	malformed                     // a signature that cannot be read
	unknownKey                    // a key that was not given
	wrongSignature                // not what the secret gives for this request
	skewed                        // signed too long ago, or too far ahead
	expired                       // a presigned request whose time is over
	fromPage                      // no client sends it, but a web page
)

// denial is a request that is not let in.
type denial struct {
	refusal refusal
	message string
}

func (e *denial) Error() string { return e.message }

// code is AWS's error code for the refusal. EC2 answers AuthFailure to all that is wrong with key, signature or clock, and the
// SDKs rely on it (clock skew of aws-sdk-go-v2, aws/retry/middleware.go); ELBv2 tells them apart.
func (e *denial) code(service string) string {
	switch {
	case e.refusal == notSigned:
		return "MissingAuthenticationToken"
	case e.refusal == malformed:
		return "IncompleteSignature"
	case e.refusal == expired:
		return "RequestExpired"
	case e.refusal == fromPage:
		return "UnauthorizedOperation"
	case service == "ec2":
		return "AuthFailure"
	case e.refusal == unknownKey:
		return "InvalidClientTokenId"
	}
	return "SignatureDoesNotMatch"
}

func refuse(r refusal, format string, args ...any) *denial {
	return &denial{r, fmt.Sprintf(format, args...)}
}

// signature is what a request says of its signature.
type signature struct {
	keyID         string
	scope         []string // date, region, service, "aws4_request"
	signedHeaders []string
	value         []byte
	date          string
	expires       time.Duration // of a presigned request; 0 of others
}

// verify checks the signature of a request whose body was read: AWS Signature Version 4, in the Authorization header or
// presigned in the query, with one of the keys (access key id → secret), at the time now. The body counts as it is; a header
// X-Amz-Content-Sha256 does not excuse from it. Like AWS within its 15 minutes, it does not notice a request that is sent
// twice.
func verify(r *http.Request, body []byte, keys map[string]string, now time.Time) *denial {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refuse(malformed, "the query cannot be parsed: %v", err)
	}
	s, refused := readSignature(r, query)
	if refused != nil {
		return refused
	}
	secret, known := keys[s.keyID]
	if !known {
		return refuse(unknownKey, "the access key id %q is none that this endpoint was given", s.keyID)
	}
	at, err := time.Parse(signingTime, s.date)
	if err != nil || at.Format(signingTime[:8]) != s.scope[0] {
		return refuse(malformed, "the date %q is none of the form %s on the day of the credential's scope", s.date, signingTime)
	}
	canonical := canonicalRequest(r, query, body, s.signedHeaders)
	digest := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{signingAlgorithm, s.date, strings.Join(s.scope, "/"), hex.EncodeToString(digest[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range s.scope {
		key = sum(key, part)
	}
	if !hmac.Equal(sum(key, toSign), s.value) {
		return refuse(wrongSignature, "the signature is not the one that the secret of %s gives for this request; "+
			"the secret differs, or something between changed the request", s.keyID)
	}
	switch {
	case at.After(now.Add(maxSkew)):
		return refuse(skewed, "signed at %s, more than %d minutes ahead of the endpoint's clock, %s",
			s.date, maxSkew/time.Minute, now.UTC().Format(signingTime))
	case s.expires > 0 && now.After(at.Add(s.expires)):
		return refuse(expired, "presigned at %s for %d s; it is %s", s.date, s.expires/time.Second, now.UTC().Format(signingTime))
	case s.expires == 0 && at.Before(now.Add(-maxSkew)):
		return refuse(skewed, "signed at %s, more than %d minutes behind the endpoint's clock, %s",
			s.date, maxSkew/time.Minute, now.UTC().Format(signingTime))
	}
	return nil
}

// readSignature reads the header's or the query's signature.
func readSignature(r *http.Request, query url.Values) (*signature, *denial) {
	var s signature
	var credential, signedHeaders, value string
	header := r.Header.Get("Authorization")
	presigned := query.Has("X-Amz-Signature")
	switch {
	case header != "" && presigned:
		return nil, refuse(malformed, "the request is signed twice, in the Authorization header and in the query")
	case header != "":
		algorithm, rest, _ := strings.Cut(header, " ")
		if algorithm != signingAlgorithm {
			return nil, refuse(malformed, "the Authorization header does not begin with %s", signingAlgorithm)
		}
		for field := range strings.SplitSeq(rest, ",") {
			name, v, _ := strings.Cut(strings.TrimSpace(field), "=")
			switch name {
			case "Credential":
				credential = v
			case "SignedHeaders":
				signedHeaders = v
			case "Signature":
				value = v
			}
		}
		s.date = r.Header.Get("X-Amz-Date")
	case presigned:
		if algorithm := query.Get("X-Amz-Algorithm"); algorithm != signingAlgorithm {
			return nil, refuse(malformed, "X-Amz-Algorithm is %q; this endpoint knows %s", algorithm, signingAlgorithm)
		}
		credential, signedHeaders, value = query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature")
		s.date = query.Get("X-Amz-Date")
		s.expires = maxSkew
		if text := query.Get("X-Amz-Expires"); text != "" {
			seconds, err := strconv.ParseInt(text, 10, 32)
			if s.expires = time.Duration(seconds) * time.Second; err != nil || s.expires <= 0 || s.expires > maxExpires {
				return nil, refuse(malformed, "X-Amz-Expires %q is no number of seconds from 1 to %d", text, maxExpires/time.Second)
			}
		}
	default:
		return nil, refuse(notSigned, "the request is not signed, and this endpoint demands it")
	}
	scope := strings.Split(credential, "/")
	if n := len(scope) - 4; n >= 1 {
		s.keyID, s.scope = strings.Join(scope[:n], "/"), scope[n:]
	}
	if s.keyID == "" || s.scope[3] != "aws4_request" {
		return nil, refuse(malformed, "the credential %q is not KEY/DATE/REGION/SERVICE/aws4_request", credential)
	}
	s.signedHeaders = strings.Split(signedHeaders, ";")
	if !slices.Contains(s.signedHeaders, "host") || !slices.IsSorted(s.signedHeaders) {
		return nil, refuse(malformed, "the signed headers %q are not sorted or lack host", signedHeaders)
	}
	var err error
	if s.value, err = hex.DecodeString(value); err != nil || len(s.value) != sha256.Size {
		return nil, refuse(malformed, "the signature %q is not %d bytes in hexadecimal", value, sha256.Size)
	}
	return &s, nil
}

// canonicalRequest is the text whose digest is signed (AWS: IAM User Guide, "Create a signed AWS API request", step 1).
func canonicalRequest(r *http.Request, query url.Values, body []byte, signedHeaders []string) string {
	var b strings.Builder
	b.WriteString(r.Method)
	b.WriteByte('\n')
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	for i, segment := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(escape(segment)) // once more, as for every service but S3
	}
	b.WriteByte('\n')
	var pairs []string
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, v := range values {
			pairs = append(pairs, escape(name)+"\x00"+escape(v))
		}
	}
	slices.Sort(pairs) // NUL keeps a name before those that it begins
	b.WriteString(strings.ReplaceAll(strings.Join(pairs, "&"), "\x00", "="))
	b.WriteByte('\n')
	for _, name := range signedHeaders {
		b.WriteString(name)
		b.WriteByte(':')
		switch name {
		case "host":
			b.WriteString(r.Host)
		case "content-length":
			b.WriteString(strconv.Itoa(len(body)))
		default:
			for i, v := range r.Header.Values(name) {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(strings.Join(strings.FieldsFunc(v, func(c rune) bool { return c == ' ' }), " "))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	b.WriteString(strings.Join(signedHeaders, ";"))
	b.WriteByte('\n')
	digest := sha256.Sum256(body)
	b.WriteString(hex.EncodeToString(digest[:]))
	return b.String()
}

// escape is AWS's percent-encoding: all but RFC 3986's unreserved characters.
func escape(s string) string {
	const digits = "0123456789ABCDEF"
	var b bytes.Buffer
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func sum(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
