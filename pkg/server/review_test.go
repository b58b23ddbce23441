package server_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const selfReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// whoami reads the answer of a review.
func whoami(t *testing.T, r result) authenticationv1.SelfSubjectReview {
	t.Helper()
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal([]byte(r.body), &review); err != nil || r.code != 201 {
		t.Fatalf("answered %d %s: %v", r.code, r.body, err)
	}
	return review
}

func TestAReviewSaysWhoAsks(t *testing.T) {
	a := start(t, access(&judge{}))
	got := whoami(t, a.do("POST", selfReviews, `{"status":{"userInfo":{"username":"root","groups":["system:masters"]}}}`, "Test-User", "jane"))
	want := authenticationv1.SelfSubjectReview{
		TypeMeta:   metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: got.CreationTimestamp},
		Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
			Username: "jane", UID: "u-1", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"team": {"a"}},
		}},
	}
	if !reflect.DeepEqual(got, want) || !got.CreationTimestamp.Equal(&metav1.Time{Time: a.noon.Truncate(1e9)}) {
		t.Errorf("got %+v", got)
	}
}

// Where nobody is asked, everybody is nobody.
func TestAReviewWithoutAuthentication(t *testing.T) {
	got := whoami(t, start(t).do("POST", selfReviews, `{}`)).Status.UserInfo
	if got.Username != "system:anonymous" || !reflect.DeepEqual(got.Groups, []string{"system:unauthenticated"}) {
		t.Errorf("got %+v", got)
	}
}

func TestFormsOfAReview(t *testing.T) {
	const kind = `"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"`
	var message strings.Builder
	question := &authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	if err := protobuf.NewSerializer(nil, nil).Encode(question, &message); err != nil {
		t.Fatal(err)
	}
	a := start(t, access(&judge{}))
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		says                     string
	}{
		{"JSON", "POST", "", "{" + kind + "}", nil, 201, `"username":"jane"`},
		{"without a kind", "POST", "", "{}", nil, 201, `"username":"jane"`},
		{"YAML", "POST", "", "kind: SelfSubjectReview\n", []string{"Content-Type", "application/yaml"}, 201, `"username":"jane"`},
		{"YAML back", "POST", "", "{}", []string{"Accept", "application/yaml"}, 201, "username: jane\n"},
		{"protobuf", "POST", "", message.String(), []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 201, `"username":"jane"`},
		{"a dry run", "POST", "?dryRun=All", "{}", nil, 201, `"username":"jane"`},
		{"a wrong dry run", "POST", "?dryRun=x", "{}", nil, 422, "supported values"},
		{"unknown fields, strictly", "POST", "?fieldValidation=Strict", "{" + kind + `,"foo":1}`, nil, 400,
			`SelfSubjectReview in version \"v1\" cannot be handled as a SelfSubjectReview: strict decoding error: unknown field \"foo\"`},
		{"another kind", "POST", "", `{"apiVersion":"v1","kind":"ConfigMap"}`, nil, 400, "cannot be handled as a SelfSubjectReview"},
		{"nothing", "POST", "", "", nil, 400, "unrecognized (must be of type SelfSubjectReview)"},
		{"a table", "POST", "", "{}", []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}, 406, "NotAcceptable"},
		{"a read", "GET", "", "", nil, 405, "MethodNotAllowed"},
		{"one of them", "GET", "/x", "", nil, 404, "NotFound"},
		{"another version", "POST", "/../../v2/selfsubjectreviews", "{}", nil, 404, "NotFound"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := a.do(test.method, selfReviews+test.path, test.body, append(test.headers, "Test-User", "jane")...)
			if got.code != test.code || !strings.Contains(got.body, test.says) {
				t.Errorf("answered %d %s", got.code, got.body)
			}
		})
	}
	got := a.do("POST", selfReviews, `{"foo":1}`, "Test-User", "jane")
	if warning := got.header.Get("Warning"); got.code != 201 || !strings.Contains(warning, `unknown field \"foo\"`) {
		t.Errorf("of an unknown field: %d, %s", got.code, warning)
	}
	got = a.do("POST", selfReviews, "{}", "Test-User", "jane", "Accept", "application/vnd.kubernetes.protobuf")
	var envelope runtime.Unknown
	var review authenticationv1.SelfSubjectReview
	content, _ := strings.CutPrefix(got.body, "k8s\x00")
	if err := envelope.Unmarshal([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := review.Unmarshal(envelope.Raw); err != nil || review.Status.UserInfo.Username != "jane" || envelope.Kind != "SelfSubjectReview" {
		t.Errorf("as protobuf: %v %v", review, err)
	}
}
