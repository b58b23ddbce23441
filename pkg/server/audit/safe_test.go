package audit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kjson "sigs.k8s.io/json"
)

func TestWhatIsToldOfAURL(t *testing.T) {
	for given, want := range map[string]string{
		"/version":                               "/version",
		"/a%2Fb?watch=1&timeoutSeconds=5":        "/a%2Fb?watch=1&timeoutSeconds=5",
		"/a?fieldSelector=metadata.name%3Db":     "/a?fieldSelector=metadata.name%3Db",
		"/a?access_token=secret":                 "/a?access_token=REDACTED",
		"/a?dryRun=All&Token=s;limit=1":          "/a?dryRun=All&Token=REDACTED&limit=1",
		"/a?secret":                              "/a?REDACTED",
		"/a?" + strings.Repeat("s", 33) + "=1":   "/a?REDACTED",
		"/a?s3cr3t=1":                            "/a?REDACTED",
		"/a?%zz=secret":                          "/a?REDACTED",
		"/a?=secret":                             "/a?REDACTED",
		"http://user:secret@host/a":              "/a",
		"/a?w%61tch=1":                           "/a?w%61tch=1",
		"/a?continue=abc&watch=1&watch=0&limit=": "/a?continue=abc&watch=1&watch=0&limit=",
	} {
		u, err := url.Parse(given)
		if err != nil {
			t.Fatal(err)
		}
		if got := safeURI(u); got != want {
			t.Errorf("%s is told as %s, want %s", given, got, want)
		}
	}
}

func TestWhatIsTooLongIsCut(t *testing.T) {
	for given, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd" + mark, "abcé!": "abc" + mark, "\x80\x80\x80\x80\x80": mark} {
		if got := cut(given, 4); got != want {
			t.Errorf("%q is cut to %q", given, got)
		}
	}
}

func TestManagedFieldsAreLeftOut(t *testing.T) {
	for given, want := range map[string]string{
		`{"metadata":{"managedFields":[{}],"name":"a"},"data":{"n":12345678901234567890}}`: `{"data":{"n":12345678901234567890},"metadata":{"name":"a"}}`,
		`{"items":[{"metadata":{"managedFields":[]}},1]}`:                                  `{"items":[{"metadata":{}},1]}`,
		`{"data":{"managedFields":"x"}}`:                                                   `{"data":{"managedFields":"x"}}`,
		`[{"path":"managedFields"}, "managedFields"]`:                                      `[{"path":"managedFields"}, "managedFields"]`,
	} {
		if got := string(withoutManagedFields([]byte(given))); got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
}

// lines is a Sink in memory.
type lines struct {
	all [][]byte
	max int
}

func (l *lines) WriteLine(line []byte) error { l.all = append(l.all, line); return nil }
func (l *lines) MaxLine() int                { return l.max }

// An event that is too long loses its bodies, and says so.
func TestALineIsBounded(t *testing.T) {
	policy, err := Parse([]byte(head+"rules: [{level: RequestResponse, omitStages: [RequestReceived]}]"), false)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		max, body int
		truncated bool
	}{"short": {4096, 100, false}, "long": {4096, 5000, true}, "longer than anything may be": {0, maxBody + 1, true}} {
		sink := &lines{max: c.max}
		r := &Recorder{Sink: sink, Policy: func() *Policy { return policy }}
		e, err := r.Begin(time.Now(), "id", &http.Request{URL: &url.URL{Path: "/a"}}, &authorizer.AttributesRecord{ResourceRequest: true})
		if err != nil {
			t.Fatal(err)
		}
		e.Request([]byte(`{"a":"` + strings.Repeat("x", c.body) + `"}`))
		e.Answering(time.Now(), 200)
		var got auditv1.Event
		if err := json.Unmarshal(sink.all[0], &got); err != nil || len(sink.all) != 1 {
			t.Fatal(err)
		}
		if (got.Annotations[annotationTruncated] == "true") != c.truncated || (got.RequestObject == nil) != c.truncated || len(sink.all[0]) > 6000 {
			t.Errorf("%s: %s", name, sink.all[0])
		}
	}
}

// Whatever a client sends, an event is one line, and one object of JSON that its type
// understands.
func FuzzAnEventIsOneLine(f *testing.F) {
	f.Add("/a?b=c", "agent", "jane", "flags", `{"a":1}`, "message", "127.0.0.1:1")
	f.Add("/a\n{}", "a\r\n\x00\u2028", "\xff\xfe", "\"}\n{", "{\n\"a\":\n1}", "\u0085", "[::1%25x]:1")
	f.Add("/%0a?%0a=%0a", "</script>", "{}", "", "nonsense", "", "@")
	policy, err := Parse([]byte(head+"omitManagedFields: true\nrules: [{level: RequestResponse}]"), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, uri, agent, who, name, body, message, from string) {
		u, err := url.ParseRequestURI(uri)
		if err != nil {
			u = &url.URL{Path: uri, RawQuery: uri}
		}
		sink := &lines{}
		r := &Recorder{Sink: sink, Policy: func() *Policy { return policy }}
		a := &authorizer.AttributesRecord{Verb: "create", Resource: name, Name: name, Namespace: name, ResourceRequest: true,
			User: &user.DefaultInfo{Name: who, Groups: []string{who}, Extra: map[string][]string{who: {who}}}}
		e, err := r.Begin(time.Now(), "id", &http.Request{URL: u, RemoteAddr: from, Header: http.Header{"User-Agent": {agent}}}, a)
		if err != nil {
			t.Fatal(err)
		}
		e.Impersonating(a.User)
		e.Decided(true, message)
		e.Object(&metav1.ObjectMeta{Name: name, UID: "x", ResourceVersion: name})
		e.Request([]byte(body))
		e.Response([]byte(body))
		e.Part(time.Now(), "create", Change{Resource: name, Name: name, Namespace: name, Previous: name, Version: name, Outcome: Created})
		e.Changed(Change{Resource: name, Name: name, Outcome: Updated})
		e.Status(&metav1.Status{Status: metav1.StatusFailure, Message: message, Reason: metav1.StatusReason(message), Details: &metav1.StatusDetails{Name: name}})
		e.Answering(time.Now(), 409)
		r.Own(time.Now(), "id", "delete", Change{Resource: name, Name: name})
		if len(sink.all) != 4 {
			t.Fatalf("%d lines", len(sink.all))
		}
		for _, line := range sink.all {
			var event auditv1.Event
			strict, err := kjson.UnmarshalStrict(line, &event)
			if err != nil || len(strict) > 0 || strings.Count(string(line), "\n") != 1 || line[len(line)-1] != '\n' || strings.ContainsAny(string(line[:len(line)-1]), "\x00\r\u2028") || !utf8.Valid(line) {
				t.Errorf("%v %v: %q", err, strict, line)
			}
		}
	})
}
