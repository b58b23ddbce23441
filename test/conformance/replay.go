package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is what recordings are replayed against.
type Server struct {
	URL   string // http:// or https://, whose certificate is not checked
	Token string // sent as a bearer token; "": none
	// CreateNamespaces makes each scenario's namespaces first, and deletes them
	// afterwards, for a server that refuses to write to others.
	CreateNamespaces bool
}

// Replay runs a scenario in fresh namespaces, and deletes what is left in them.
// It returns one normalized answer for each step, in order, to be compared with
// Step.Wanted. A request that got no answer has the member "error" in its place.
// An error means that the scenario could not be run.
func (s Server) Replay(sc Scenario) ([]any, error) {
	client, err := newClient(s)
	if err != nil {
		return nil, err
	}
	defer client.close()
	r := newReplay(client, sc)
	defer r.cleanUp(s.CreateNamespaces)
	if s.CreateNamespaces {
		if err := r.createNamespaces(); err != nil {
			return nil, err
		}
	}
	var answers []any
	for i, step := range sc.Steps {
		answer, err := r.run(step)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// replay is one run of one scenario.
type replay struct {
	client     *client
	namespaces values // by placeholder
	values     values // the namespaces, and what was saved
	normalizer *normalizer
}

func newReplay(c *client, sc Scenario) *replay {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	tag := hex.EncodeToString(random)
	r := &replay{client: c, namespaces: values{"ns": "cf-" + tag}, values: values{}}
	if strings.Contains(sc.text, "{ns2}") {
		r.namespaces["ns2"] = "cg-" + tag // sorts behind the other, as when recorded
	}
	for name, namespace := range r.namespaces {
		r.values[name] = namespace
	}
	r.normalizer = newNormalizer(sc, r.namespaces, time.Now())
	return r
}

// run makes a step's request. Its errors are faults of the recording; what goes
// wrong between here and the server is an answer.
func (r *replay) run(s Step) (any, error) {
	req, err := r.values.request(s)
	if err != nil {
		return nil, err
	}
	if s.watches() {
		return r.watch(s, req)
	}
	resp, body, err := r.client.call(req)
	if err != nil {
		return unanswered(err), nil
	}
	return r.answer(s, resp, body), nil
}

func unanswered(err error) object { return object{{"error", err.Error()}} }

// comparedHeaders are the headers that are compared, beside the Content-Type.
var comparedHeaders = []string{"Allow", "Retry-After", "Warning"}

// head is the answer as far as the status line and headers go.
func (r *replay) head(resp *http.Response) object {
	var contentType any
	if sent := resp.Header.Values("Content-Type"); len(sent) > 0 {
		contentType = strings.Join(sent, ", ")
	}
	out := object{{"code", json.Number(strconv.Itoa(resp.StatusCode))}, {"contentType", contentType}}
	headers := object{}
	for _, name := range comparedHeaders {
		sent := array{}
		for _, value := range resp.Header.Values(name) {
			sent = append(sent, r.normalizer.text(value))
		}
		if len(sent) > 0 {
			headers = headers.with(name, sent)
		}
	}
	if len(headers) > 0 {
		out = out.with("headers", headers)
	}
	return out
}

// answer is a whole answer.
func (r *replay) answer(s Step, resp *http.Response, body []byte) object {
	out := r.head(resp)
	if len(body) == 0 {
		return out
	}
	contentType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	text := func(normalize func(string) string) object {
		return out.with("body", object{{"text", normalize(strings.ToValidUTF8(string(body), "\uFFFD"))}})
	}
	switch {
	case strings.Contains(contentType, "json"):
		v, err := decodeJSON(body)
		if err != nil {
			return text(r.normalizer.text)
		}
		out = out.with("body", r.normalizer.value(s.Project.of(v)))
		r.save(s, v)
		return out
	case strings.Contains(contentType, "protobuf"), strings.Contains(contentType, "cbor"):
		return out.with("body", object{{"binary", latin1(body[:min(len(body), 4)])}})
	case strings.Contains(contentType, "yaml"):
		return text(r.normalizer.yaml)
	default:
		return text(r.normalizer.text)
	}
}

// latin1 reads each byte as the character of that number.
func latin1(bytes []byte) string {
	var out strings.Builder
	for _, b := range bytes {
		out.WriteRune(rune(b))
	}
	return out.String()
}

// save keeps the values of an answer that later steps use.
func (r *replay) save(s Step, answer any) {
	for name, path := range s.Save {
		switch v := dig(answer, path).(type) {
		case absent:
		case string:
			r.values[name] = v
		default:
			r.values[name] = encodeJSON(v)
		}
	}
}

// of cuts out the part of an answer that a step is about.
func (p *Projection) of(v any) any {
	o, ok := v.(object)
	if p == nil || !ok {
		return v
	}
	if p.Keys {
		return sortedKeys(o)
	}
	if p.Pick != nil {
		o = o.only(p.Pick)
	}
	if list, ok := o.get("resources").(array); ok && p.Resources != nil {
		o = o.with("resources", named(list, p.Resources))
	}
	return o
}

func sortedKeys(o object) array {
	var keys []string
	for _, m := range o {
		keys = append(keys, m.key)
	}
	slices.Sort(keys)
	out := array{}
	for _, key := range keys {
		out = append(out, key)
	}
	return out
}

func (o object) only(keys []string) object {
	out := object{}
	for _, m := range o {
		if slices.Contains(keys, m.key) {
			out = append(out, m)
		}
	}
	return out
}

// named are the objects of a list whose name is among these.
func named(list array, names []string) array {
	out := array{}
	for _, item := range list {
		if o, ok := item.(object); ok && slices.Contains(names, o.text("name")) {
			out = append(out, item)
		}
	}
	return out
}
