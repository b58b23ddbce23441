// Command testlog turns the events of go test -json on standard input into the
// lines that go test prints, and tells at the end which tests were skipped and why.
//
//	go test -json ./... | go run ./scripts/testlog
//
// Its exit code is 1 if a test failed, and with -all also if one was skipped. The
// seeds of fuzz targets don't count: there a skip says that the input means
// nothing, not that something is missing.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	all := flag.Bool("all", false, "fail if a test was skipped")
	flag.Parse()
	l := &testlog{out: os.Stdout, said: map[test]*strings.Builder{}}
	if err := l.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	l.end()
	if l.failed || *all && len(l.skipped) > 0 {
		os.Exit(1)
	}
}

// event is what go test -json tells of; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

type test struct{ pkg, name string }

type testlog struct {
	out     io.Writer
	said    map[test]*strings.Builder // by tests that have not ended
	skipped []string
	failed  bool
}

func (l *testlog) read(from io.Reader) error {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			l.take(e)
		} else {
			fmt.Fprint(l.out, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (l *testlog) take(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		l.say(t, e.Output)
	case "pass":
		delete(l.said, t)
	case "skip":
		l.skip(t)
	case "fail", "build-fail":
		l.fail(t)
	}
}

// say prints what a package says, and keeps what a test says until it has ended.
func (l *testlog) say(t test, text string) {
	if t.name == "" {
		if text != "PASS\n" {
			fmt.Fprint(l.out, text)
		}
		return
	}
	if l.said[t] == nil {
		l.said[t] = &strings.Builder{}
	}
	l.said[t].WriteString(text)
}

func (l *testlog) skip(t test) {
	if t.name != "" && !strings.HasPrefix(t.name, "Fuzz") {
		l.skipped = append(l.skipped, fmt.Sprintf("%s %s: %s", t.pkg, t.name, reason(l.said[t])))
	}
	delete(l.said, t)
}

// fail prints what the test said; of a package that failed also what those tests
// said that didn't come to their end.
func (l *testlog) fail(failed test) {
	l.failed = true
	for t, text := range l.said {
		if t == failed || failed.name == "" && t.pkg == failed.pkg {
			fmt.Fprint(l.out, text)
			delete(l.said, t)
		}
	}
}

func (l *testlog) end() {
	fmt.Fprintf(l.out, "%d tests were skipped\n", len(l.skipped))
	for _, s := range l.skipped {
		fmt.Fprintln(l.out, "  "+s)
	}
}

// reason is the first line that a test said for itself.
func reason(said *strings.Builder) string {
	if said == nil {
		return ""
	}
	for line := range strings.Lines(said.String()) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return ""
}
