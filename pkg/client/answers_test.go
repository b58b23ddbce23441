package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
)

func isLost(err error) bool   { return errors.As(err, new(*retry.LostError)) }
func isUnread(err error) bool { return errors.As(err, new(*retry.UnreadError)) }
func isUnsent(err error) bool { return errors.As(err, new(*retry.UnsentError)) }

// passesForAnAnswer tells whether a caller could take the error for what the
// API says about the object.
func passesForAnAnswer(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsGone(err) || apierrors.IsInvalid(err)
}

func TestAStatusDecidesByItsReason(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		body   string
		header []string
		reason metav1.StatusReason
		after  int // seconds to wait
	}{
		"NotFound": {404, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"flags"}}`, nil,
			metav1.StatusReasonNotFound, 0},
		"NotFound without details": {404, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`, nil,
			metav1.StatusReasonNotFound, 0},
		"AlreadyExists": {409, `{"kind":"Status","status":"Failure","reason":"AlreadyExists","code":409}`, nil,
			metav1.StatusReasonAlreadyExists, 0},
		"Conflict": {409, `{"kind":"Status","status":"Failure","reason":"Conflict","code":409}`, nil,
			metav1.StatusReasonConflict, 0},
		"a code that only the status line has": {409, `{"kind":"Status","status":"Failure","reason":"Conflict"}`, nil,
			metav1.StatusReasonConflict, 0},
		"the delay of the body": {429, `{"kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":3}}`,
			[]string{"Retry-After", "9"}, metav1.StatusReasonTooManyRequests, 3},
		"the delay of the header": {503, `{"kind":"Status","status":"Failure","reason":"ServiceUnavailable","code":503}`,
			[]string{"Retry-After", "9"}, metav1.StatusReasonServiceUnavailable, 9},
		"Unauthorized": {401, `{"kind":"Status","status":"Failure","reason":"Unauthorized","code":401}`, nil,
			metav1.StatusReasonUnauthorized, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, stub(c.code, "application/json", c.body, c.header...))
			for verb, call := range calls {
				err := call(t.Context(), m)
				var status *apierrors.StatusError
				if !errors.As(err, &status) || status.ErrStatus.Reason != c.reason || int(status.ErrStatus.Code) != c.code {
					t.Errorf("%s: got %v (%+v)", verb, err, status)
				}
				if after, _ := apierrors.SuggestsClientDelay(err); after != c.after {
					t.Errorf("%s: asks to wait %d seconds, want %d", verb, after, c.after)
				}
				if errors.As(err, new(*client.UnexpectedError)) || isLost(err) || isUnsent(err) {
					t.Errorf("%s: an answer of the API is taken for something else: %v", verb, err)
				}
			}
		})
	}
}

func TestUnauthorizedSaysWhatToDo(t *testing.T) {
	m := mapsOf(t, stub(401, "application/json", `{"kind":"Status","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
	_, err := m.Get(t.Context(), "flags")
	for _, word := range []string{"http://127.0.0.1:", `configmaps "flags" in namespace "team-a"`, "--token"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q lacks %q", err, word)
		}
	}
}

func TestWhatIsNoAnswerOfTheAPIPassesForNone(t *testing.T) {
	const html, json = "text/html", "application/json"
	for name, c := range map[string]struct {
		code              int
		contentType, body string
		header            []string
		says              string
	}{
		"a proxy's 404":       {404, html, "<html><h1>404 page not found</h1></html>", nil, "404 page not found"},
		"an empty 404":        {404, html, "", nil, "empty body"},
		"a proxy's 409":       {409, html, "<html>conflict</html>", nil, "409 Conflict"},
		"a 404 cut off":       {404, json, `{"kind":"Status","status":"Failure","reason":"NotFou`, nil, "cut off"},
		"JSON of another API": {404, json, `{"error":"not found"}`, nil, "neither the object nor a Status"},
		"a 403 page":          {403, html, "<html>login</html>", nil, "403 Forbidden"},
		"a 410 page":          {410, html, "gone", nil, "410 Gone"},
		"a 429 page":          {429, html, "slow down", nil, "429 Too Many Requests"},
		"a 502 page":          {502, html, "<html>bad gateway</html>", nil, "502 Bad Gateway"},
		"a 503 page":          {503, html, "<html>starting</html>", nil, "503 Service Unavailable"},
		"a success page":      {200, html, "<html>welcome</html>", nil, "welcome"},
		"an empty success":    {200, json, "", nil, "empty body"},
		"half an object":      {200, json, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"na`, nil, "cut off"},
		"another object":      {200, json, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"other","resourceVersion":"1"}}`, nil, "neither"},
		"a failure that came as a success": {200, json, `{"kind":"Status","status":"Failure","reason":"NotFound"}`,
			nil, "neither"},
		"a NotFound inside a 502": {502, json, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`, nil, "contradicts"},
		"a Conflict inside a 500": {500, json, `{"kind":"Status","status":"Failure","reason":"Conflict"}`, nil, "contradicts"},
		"a path that the API does not know": {404, json, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{}}`,
			nil, "serves no such resource"},
		"a redirect elsewhere":  {307, html, "", []string{"Location", "http://user:secret@cm.example/x?token=secret"}, "http://cm.example/x"},
		"a redirect to nothing": {302, html, "", nil, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, stub(c.code, c.contentType, c.body, c.header...))
			for verb, call := range calls {
				err := call(t.Context(), m)
				var unexpected *client.UnexpectedError
				if !errors.As(err, &unexpected) || unexpected.Code != c.code || unexpected.URL == "" || unexpected.Method == "" {
					t.Fatalf("%s: got %v, want an UnexpectedError of code %d", verb, err, c.code)
				}
				if passesForAnAnswer(err) {
					t.Errorf("%s: passes for an answer about the object: %v", verb, err)
				}
				for _, word := range []string{c.says, "http://127.0.0.1:", "configmaps "} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%s: %q lacks %q", verb, err, word)
					}
				}
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %q gives credentials away", verb, err)
				}
			}
		})
	}
}

func TestAWriteWithAnAnswerThatTellsNothingIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		lost bool
	}{
		"a success page":   {200, "<html>", true},
		"an empty success": {201, "", true},
		"half an object":   {200, `{"kind":"ConfigMap","meta`, true},
		"500":              {500, "<html>", true},
		"502":              {502, "<html>", true},
		"503":              {503, "<html>", true},
		"504":              {504, "", true},
		"a proxy's 400":    {400, "<html>", false},
		"a proxy's 404":    {404, "<html>", false},
		"a proxy's 409":    {409, "<html>", false},
		"a proxy's 429":    {429, "<html>", false},
		"a redirect":       {307, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, stub(c.code, "text/html", c.body))
			for _, verb := range writes {
				if err := calls[verb](t.Context(), m); isLost(err) != c.lost || isUnsent(err) {
					t.Errorf("%s: got %v", verb, err)
				}
			}
		})
	}
}

func TestACodeFrom500UpWithoutAStatusIsNoServer(t *testing.T) {
	for code, unreachable := range map[int]bool{403: false, 404: false, 429: false, 500: true, 501: true, 502: true, 503: true, 504: true, 599: true} {
		for _, body := range []string{"", "<html>", `{"error":"x"}`} {
			m := mapsOf(t, stub(code, "text/html", body))
			for _, verb := range []string{"get", "list"} {
				if err := calls[verb](t.Context(), m); client.IsUnreachable(err) != unreachable {
					t.Errorf("%s, %d %q: got %v", verb, code, body, err)
				}
			}
			for _, err := range m.Watch(t.Context(), client.WatchOptions{}) {
				if client.IsUnreachable(err) != unreachable {
					t.Errorf("watch, %d %q: got %v", code, body, err)
				}
			}
		}
	}
}

func TestAPageThatAsksToComeBackIsWaitedFor(t *testing.T) {
	for _, code := range []int{429, 503} {
		m := mapsOf(t, stub(code, "text/html", "<html>later</html>", "Retry-After", "7"))
		_, err := m.Get(t.Context(), "flags")
		if !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%d: got %v", code, err)
		}
		if after, ok := apierrors.SuggestsClientDelay(err); !ok || after != 7 {
			t.Errorf("%d: asks to wait %d seconds", code, after)
		}
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	m := mapsOf(t, endless)
	for verb, limit := range map[string]string{"get": "8 MiB", "list": "64 MiB", "put": "8 MiB"} {
		err := calls[verb](t.Context(), m)
		if err == nil || !strings.Contains(err.Error(), limit) || !errors.As(err, new(*client.UnexpectedError)) {
			t.Errorf("%s: got %v", verb, err)
		}
		if isLost(err) != (verb == "put") {
			t.Errorf("%s: a write alone may have been carried out: %v", verb, err)
		}
	}
}

func TestAValueIsNotShownInAnError(t *testing.T) {
	m := mapsOf(t, stub(200, "application/json", `{"kind":"ConfigMap","data":{"password":"hunter2"`))
	for verb, call := range calls {
		if err := call(t.Context(), m); strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
