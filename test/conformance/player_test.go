package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// player is a server that gives a scenario's recorded answers one after the
// other, with real values in place of the symbols.
type player struct {
	mu      sync.Mutex // guards steps; a watch and the steps during it overlap
	steps   []Step
	symbols *strings.Replacer
}

// play serves the answers as the wants of the steps have them.
func play(t *testing.T, sc Scenario) Server {
	p := &player{symbols: realValues(sc)}
	for step := range everyStep(sc.Steps) {
		p.steps = append(p.steps, step)
	}
	hs := httptest.NewServer(p)
	t.Cleanup(hs.Close)
	return Server{URL: hs.URL}
}

// realValues are values that the symbols of a scenario could stand for.
func realValues(sc Scenario) *strings.Replacer {
	pairs := []string{
		"<listrv>", "999", "<time>", time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		"<continue>", "bmV4dA", "<age>", "4m5s", "<scheme>", "pkg/scheme.go:1",
	}
	for i := range 50 {
		pairs = append(pairs,
			fmt.Sprintf("<rv%d>", i), strconv.Itoa(100+i),
			fmt.Sprintf("<uid%d>", i), fmt.Sprintf("aaaaaaaa-bbbb-4ccc-8ddd-%012d", i))
	}
	seen := map[string]bool{}
	for step := range everyStep(sc.Steps) {
		for _, symbol := range regexp.MustCompile(`<gen\d+>`).FindAllString(encodeJSON(step.Want), -1) {
			if !seen[symbol] {
				seen[symbol] = true
				pairs = append(pairs, symbol, fmt.Sprintf("%sx%04d", generateName(step, nil), len(seen)))
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// next takes the step whose turn it is.
func (p *player) next() (Step, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) == 0 {
		return Step{}, false
	}
	step := p.steps[0]
	p.steps = p.steps[1:]
	return step, true
}

func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	step, ok := p.next()
	if !ok {
		http.NotFound(w, r) // the cleaning up
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // else the connection might be reset before the answer is read
	want, err := decodeJSON([]byte(p.concrete(step.Want, r)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := inServersOrder(want).(object)
	if contentType := answer.text("contentType"); contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	headers, _ := answer.get("headers").(object)
	for _, h := range headers {
		for _, value := range h.value.(array) {
			w.Header().Add(h.key, value.(string))
		}
	}
	code, _ := strconv.Atoi(string(answer.get("code").(json.Number)))
	w.WriteHeader(code)
	fmt.Fprint(w, wireBody(step, answer))
	events, streams := answer.get("events").(array)
	if !streams || code != http.StatusOK {
		return
	}
	for _, event := range events {
		fmt.Fprintln(w, encodeJSON(streamed(event)))
	}
	_ = http.NewResponseController(w).Flush() // a client that left needs nothing
	if answer.get("closed") != true {
		<-r.Context().Done()
	}
}

var (
	tag = regexp.MustCompile(`c[fg]-([0-9a-f]{8})`)
	run = regexp.MustCompile(`(.)<x(\d+)>`)
)

// concrete writes an answer with real values for the symbols.
func (p *player) concrete(want object, r *http.Request) string {
	text := p.symbols.Replace(encodeJSON(want))
	if found := tag.FindStringSubmatch(r.RequestURI); found != nil {
		text = values{"ns": "cf-" + found[1], "ns2": "cg-" + found[1]}.fill(text)
	}
	return run.ReplaceAllStringFunc(text, func(s string) string {
		found := run.FindStringSubmatch(s)
		count, _ := strconv.Atoi(found[2])
		return strings.Repeat(found[1], count)
	})
}

// inServersOrder puts managedFields into the order in which a server has them.
func inServersOrder(v any) any {
	switch v := v.(type) {
	case array:
		out := array{}
		for _, item := range v {
			out = append(out, inServersOrder(item))
		}
		return out
	case object:
		out := object{}
		for _, m := range v {
			value := inServersOrder(m.value)
			if list, ok := value.(array); ok && m.key == "managedFields" {
				slices.SortStableFunc(list, byMembers("operation", "time", "manager", "apiVersion"))
			}
			out = append(out, member{m.key, value})
		}
		return out
	default:
		return v
	}
}

// streamed is the line of a stream that was recorded as an event or as none.
func streamed(event any) any {
	if line := event.(object).get("notAnEvent"); line != (absent{}) {
		return line
	}
	return event
}

// wireBody is the body whose projected and normalized form was recorded.
func wireBody(s Step, answer object) string {
	switch body := answer.get("body").(type) {
	case absent:
		return ""
	case object:
		return cmp.Or(body.text("text"), body.text("binary"), encodeJSON(body))
	case array: // of names
		out := object{}
		for _, key := range body {
			out = out.with(key.(string), nil)
		}
		return encodeJSON(out)
	default:
		return fmt.Sprint(body)
	}
}

func recorded(t *testing.T) []Scenario {
	t.Helper()
	scenarios, err := Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

// mismatches replays a scenario against a player of what was played.
func mismatches(t *testing.T, sc, played Scenario) []Mismatch {
	t.Helper()
	answers, err := play(t, played).Replay(sc)
	if err != nil {
		t.Fatal(err)
	}
	var all []Mismatch
	for i, step := range sc.Steps {
		all = append(all, Compare(step.Wanted(), answers[i])...)
	}
	return all
}

func TestRecordedAnswersAreFoundEqualToThemselves(t *testing.T) {
	for _, sc := range recorded(t) {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			for _, m := range mismatches(t, sc, sc) {
				t.Error(m)
			}
		})
	}
}

// In the last answer of each scenario one value, a different one in each, is
// changed.
func TestAChangeOfOneValueIsFound(t *testing.T) {
	for _, sc := range recorded(t) {
		if sc.Name == "http/bad-percent-escape" {
			continue // net/http refuses it before the player is asked
		}
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			last := len(sc.Steps) - 1
			sc.Steps = slices.Clone(sc.Steps)
			sc.Steps[last].Timeout = 1 // for a stream that should be closed and is not
			played := sc
			played.Steps = slices.Clone(sc.Steps)
			hash := fnv.New32a()
			_, _ = hash.Write([]byte(sc.Name)) // never fails
			chosen := int(hash.Sum32()) % countValues(sc.Steps[last].Want)
			played.Steps[last].Want = changeValue(sc.Steps[last].Want, &chosen).(object)
			if len(mismatches(t, sc, played)) == 0 {
				t.Errorf("not found: %s", encodeJSON(played.Steps[last].Want))
			}
		})
	}
}

// countValues counts the values in v that have no members.
func countValues(v any) int {
	chosen := -1
	changeValue(v, &chosen)
	return -1 - chosen
}

// changeValue gives a copy of v in which the chosen one of the values without
// members is another. It counts chosen down.
func changeValue(v any, chosen *int) any {
	switch v := v.(type) {
	case array:
		out := array{}
		for _, item := range v {
			out = append(out, changeValue(item, chosen))
		}
		return out
	case object:
		out := object{}
		for _, m := range v {
			out = append(out, member{m.key, changeValue(m.value, chosen)})
		}
		return out
	default:
		*chosen--
		if *chosen != -1 {
			return v
		}
		return another(v)
	}
}

func another(v any) any {
	switch v := v.(type) {
	case string:
		return "~" + v
	case bool:
		return !v
	case json.Number:
		n, _ := v.Int64()
		return json.Number(strconv.FormatInt(n+1, 10))
	default:
		return ""
	}
}
