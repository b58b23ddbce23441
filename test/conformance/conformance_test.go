package conformance_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/test/conformance"
)

var (
	serverURL = flag.String("conformance.server", "",
		"replay against the server at this `URL` instead of one in the process")
	token = flag.String("conformance.token", "",
		"bearer token for -conformance.server")
	createNamespaces = flag.Bool("conformance.create-namespaces", false,
		"create each scenario's namespaces first, as kube-apiserver needs it")
	asRecorded = flag.Bool("conformance.as-recorded", false,
		"want the recorded answers also where cmserver's differ on purpose, as for kube-apiserver")
)

// target is the server to replay against.
func target(t *testing.T) conformance.Server {
	s := conformance.Server{URL: *serverURL, Token: *token, CreateNamespaces: *createNamespaces}
	if s.URL == "" {
		s.URL = startServer(t)
	}
	return s
}

// startServer starts an empty server that lasts as long as the test.
func startServer(t *testing.T) string {
	st, err := local.Open(local.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Options{Store: st, UnconditionalPut: server.PutAlways})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		hs.Close()
		s.Stop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return hs.URL
}

// Every recorded scenario gets the recorded answers, except for the steps that
// differ on purpose: these get the answers that testdata/differences.yaml gives.
func TestTheServerAnswersAsRecorded(t *testing.T) {
	scenarios := load(t)
	marks := marksFor(t, scenarios)
	to := target(t)
	var total tally
	t.Cleanup(func() { fmt.Println(&total) }) // when all scenarios are through
	for _, sc := range scenarios {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			judged := make([]verdict, len(sc.Steps)) // what is not judged has failed
			defer func() { total.add(judged) }()
			answers, err := to.Replay(sc)
			if err != nil {
				t.Fatal(err)
			}
			for i, step := range sc.Steps {
				name := fmt.Sprintf("step %d, %s", i+1, step)
				judged[i] = judge(t, name, step.Wanted(), answers[i], marks[at{sc.Name, i + 1}])
			}
		})
	}
}

// verdict is what a step's answer was found to be.
type verdict struct {
	passed bool
	why    string // the row of the table, if it differs on purpose
}

// judge compares an answer with the recorded one, or with what the mark, if
// there is one, makes of it.
func judge(t *testing.T, step string, recorded, got any, mark *conformance.Difference) verdict {
	if mark == nil {
		return verdict{passed: equal(t, step, recorded, got)}
	}
	if len(conformance.Compare(recorded, got)) == 0 {
		t.Errorf("%s: answered as recorded; remove its mark from %s", step, differencesFile)
		return verdict{}
	}
	wanted, err := mark.Apply(recorded)
	if err != nil {
		t.Error(err)
		return verdict{}
	}
	return verdict{passed: equal(t, step+" (marked)", wanted, got), why: mark.Why}
}

// equal reports where the answers differ, the first places if there are many.
func equal(t *testing.T, step string, wanted, got any) bool {
	const most = 8
	mismatches := conformance.Compare(wanted, got)
	for i, m := range mismatches {
		if i == most {
			t.Errorf("%s: and %d more", step, len(mismatches)-most)
			break
		}
		t.Errorf("%s: %s", step, m)
	}
	return len(mismatches) == 0
}

// tally counts what the scenarios came to.
type tally struct {
	mu        sync.Mutex // guards the rest; scenarios end in parallel
	scenarios counts
	steps     counts
	rows      map[string]int // row of the table to steps that it explains
}

type counts struct{ all, recorded, onPurpose int }

func (c *counts) add(passed, differs bool) {
	c.all++
	switch {
	case !passed:
	case differs:
		c.onPurpose++
	default:
		c.recorded++
	}
}

func (t *tally) add(steps []verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	passed, differs := true, false
	for _, s := range steps {
		t.steps.add(s.passed, s.why != "")
		passed = passed && s.passed
		differs = differs || s.why != ""
		if s.passed && s.why != "" {
			if t.rows == nil {
				t.rows = map[string]int{}
			}
			t.rows[s.why]++
		}
	}
	t.scenarios.add(passed, differs)
}

// String sums up, a row of the table a line.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out strings.Builder
	for _, c := range []struct {
		of string
		counts
	}{{"scenarios", t.scenarios}, {"steps", t.steps}} {
		fmt.Fprintf(&out, "conformance: %d of %d %s match as recorded, %d differ on purpose, %d fail\n",
			c.recorded, c.all, c.of, c.onPurpose, c.all-c.recorded-c.onPurpose)
	}
	for _, row := range slices.Sorted(maps.Keys(t.rows)) {
		fmt.Fprintf(&out, "conformance: steps that differ on purpose: %d: %s\n", t.rows[row], row)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

const (
	differencesFile = "testdata/differences.yaml"
	tablePage       = "../../docs/kubernetes-compatibility.md"
	tableHeading    = "## Where it differs on purpose"
)

func load(t *testing.T) []conformance.Scenario {
	t.Helper()
	scenarios, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

func differences(t *testing.T) []conformance.Difference {
	t.Helper()
	text, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := conformance.ParseDifferences(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// at is the place of a step.
type at struct {
	scenario string
	step     int
}

// marksFor finds the steps that are marked; none if recorded answers are wanted.
func marksFor(t *testing.T, scenarios []conformance.Scenario) map[at]*conformance.Difference {
	marks := map[at]*conformance.Difference{}
	if *asRecorded {
		return marks
	}
	for _, d := range differences(t) {
		marks[at{d.Scenario, d.Step}] = &d
	}
	return marks
}

func TestEveryMarkIsOfAStepAndARowOfTheTable(t *testing.T) {
	recorded := map[at]any{}
	for _, sc := range load(t) {
		for i, step := range sc.Steps {
			recorded[at{sc.Name, i + 1}] = step.Wanted()
		}
	}
	rows := tableRows(t)
	seen := map[at]bool{}
	for _, d := range differences(t) {
		place := at{d.Scenario, d.Step}
		if !slices.Contains(rows, d.Why) {
			t.Errorf("%s: %s has no such row", d, tablePage)
		}
		if seen[place] {
			t.Errorf("%s: marked twice", d)
		}
		seen[place] = true
		if recorded[place] == nil {
			t.Errorf("%s: no such step", d)
		} else if _, err := d.Apply(recorded[place]); err != nil {
			t.Error(err)
		}
	}
}

var firstCell = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)

// tableRows are the cases in the table of differences.
func tableRows(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(tablePage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), tableHeading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", tablePage, tableHeading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for _, cell := range firstCell.FindAllStringSubmatch(section, -1) {
		rows = append(rows, cell[1])
	}
	return rows
}
