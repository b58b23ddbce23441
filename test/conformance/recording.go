package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
)

// Scenario is a sequence of requests, each with the answer that was recorded.
// It is not changed by a replay, and may be replayed by several goroutines.
type Scenario struct {
	Name  string   // unique, as in "update/stale"
	Topic string   // the recording that it is in, as in "update"
	Tags  []string // what it presumes of a server
	Steps []Step

	text string // the steps as they are written
}

// Step is one request of a scenario and the answer to it.
type Step struct {
	// Kind is "watch" for a stream of events, "" for any other request.
	Kind    string          `json:"kind"`
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	Query   object          `json:"query"`
	Headers object          `json:"headers"` // a null value: send no such header
	Body    json.RawMessage `json:"body"`    // sent as JSON
	Raw     json.RawMessage `json:"raw"`     // a text, or several, sent as they are
	// Save names values of the answer, by their path, for later steps.
	Save    map[string]string `json:"save"`
	Project *Projection       `json:"project"`
	// During are the requests that are made while a watch is open.
	During []Step `json:"during"`
	// Events is how many events are awaited; nil: all until the server closes.
	Events *int `json:"events"`
	// Timeout limits a watch, in seconds.
	Timeout int    `json:"timeout"`
	Want    object `json:"want"`
}

// Projection says which part of an answer a step is about.
type Projection struct {
	Keys      bool     `json:"keys"`      // the names of the members, sorted
	Pick      []string `json:"pick"`      // these members
	Resources []string `json:"resources"` // these entries of an APIResourceList
}

// Load reads every recording (*.json.gz) in a directory.
func Load(dir fs.FS) ([]Scenario, error) {
	names, err := fs.Glob(dir, "*.json.gz")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("no recordings (*.json.gz) found")
	}
	var all []Scenario
	for _, name := range names {
		scenarios, err := loadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read recording %s: %w", name, err)
		}
		all = append(all, scenarios...)
	}
	return all, nil
}

func loadFile(dir fs.FS, name string) ([]Scenario, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse refuses what it does not know: a step whose meaning is partly ignored
// would pass without having been checked.
func parse(text []byte) ([]Scenario, error) {
	var file struct {
		RecordedFrom string `json:"recordedFrom"`
		Topic        string `json:"topic"`
		Scenarios    []struct {
			Name  string          `json:"name"`
			Topic string          `json:"topic"`
			Tags  []string        `json:"tags"`
			Steps json.RawMessage `json:"steps"`
		} `json:"scenarios"`
	}
	if err := decodeStrictly(text, &file); err != nil {
		return nil, err
	}
	var all []Scenario
	for _, s := range file.Scenarios {
		sc := Scenario{Name: s.Name, Topic: s.Topic, Tags: s.Tags, text: string(s.Steps)}
		if err := decodeStrictly(s.Steps, &sc.Steps); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		all = append(all, sc)
	}
	return all, nil
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Wanted is the answer that was recorded, in the form in which Replay gives it:
// what was answered during a watch is part of the watch's answer.
func (s Step) Wanted() any {
	if !s.watches() || len(s.During) == 0 || s.Want.get("code") != json.Number("200") {
		return s.Want
	}
	during := array{}
	for _, d := range s.During {
		during = append(during, d.Wanted())
	}
	return s.Want.with("during", during)
}

func (s Step) watches() bool { return s.Kind == "watch" }

// String is the request in short.
func (s Step) String() string {
	method, query := s.Method, ""
	if s.watches() {
		method = "WATCH"
	}
	if len(s.Query) > 0 {
		query = "?" + encodeQuery(s.Query)
	}
	return shortenRuns(method + " " + s.Path + query)
}

// everyStep yields the steps and those during them.
func everyStep(steps []Step) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for _, s := range steps {
			if !yield(s) {
				return
			}
			for d := range everyStep(s.During) {
				if !yield(d) {
					return
				}
			}
		}
	}
}
