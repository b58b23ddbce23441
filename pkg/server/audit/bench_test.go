package audit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// BenchmarkRecorder is what the log costs a request: one that it tells nothing of, and
// one that is a line in a file.
func BenchmarkRecorder(b *testing.B) {
	log, err := Open(Options{Path: b.TempDir() + "/audit.log", MaxSize: 100, MaxBackups: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	policy := DefaultPolicy(false)
	r := &Recorder{Sink: log, Policy: func() *Policy { return policy }}
	req := httptest.NewRequest(http.MethodPut, "/api/v1/namespaces/default/configmaps/flags?fieldManager=x", nil)
	who := &user.DefaultInfo{Name: "jane", Groups: []string{"devs", user.AllAuthenticated}}
	for _, verb := range []string{"get", "update"} {
		b.Run(verb, func(b *testing.B) {
			b.ReportAllocs()
			a := &authorizer.AttributesRecord{User: who, Verb: verb, Namespace: "default", Resource: "configmaps", Name: "flags", ResourceRequest: true}
			for b.Loop() {
				e, err := r.Begin(time.Now(), "id", req, a)
				if err != nil {
					b.Fatal(err)
				}
				e.Decided(true, "")
				e.Changed(Change{Resource: "configmaps", Namespace: "default", Name: "flags", Previous: "1", Version: "2", Outcome: Updated})
				e.Answering(time.Now(), 200)
			}
		})
	}
}
