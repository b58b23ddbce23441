package inject

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is a fault by the name that it has in a Spec.
type Kind string

// The faults.
const (
	Conflict    Kind = "conflict"    // a write that names a version is refused
	Latency     Kind = "latency"     // a request waits before it is handled
	Reset       Kind = "reset"       // the connection is cut before the request is handled
	Lost        Kind = "lost"        // a write is handled, and the connection cut before the answer
	TooMany     Kind = "429"         // refused, with Retry-After
	Internal    Kind = "500"         // refused
	Unavailable Kind = "503"         // refused, with Retry-After
	Timeout     Kind = "504"         // refused
	Gone        Kind = "gone"        // a watch from a version, or the next page of a list, has expired
	WatchClose  Kind = "watch-close" // a watch ends early, in good order
)

// kinds are all faults, in the order in which they are told.
var kinds = []Kind{Conflict, Latency, Reset, Lost, TooMany, Internal, Unavailable, Timeout, Gone, WatchClose}

// timed are the faults that take a time, and strike always unless a rate follows.
var timed = []Kind{Latency, WatchClose}

// The settings that stand among the faults.
const (
	seedName       = "seed"
	retryAfterName = "retry-after"
)

// defaultRetryAfter is how long a client is asked to wait by a 429 and a 503.
const defaultRetryAfter = time.Second

// Spec says which faults are injected, and how often. The zero value injects none.
type Spec struct {
	rules      map[Kind]rule
	seed       uint64
	retryAfter time.Duration
}

// rule is one fault of a Spec.
type rule struct {
	share    float64 // of those that it may strike; not if first is set
	first    int     // so many, from the first on
	min, max time.Duration
}

// always is the rate of what strikes every request.
const always = "100%"

// Parse reads a Spec: faults and settings, separated by commas.
//
//	conflict=10%                  a share of those that it may strike
//	lost=1x                       the first one, and no more
//	latency=50ms                  each
//	latency=10ms-200ms@25%        a share of them, for a time between the two
//	seed=42                       the source of chance
//	retry-after=2s                what a 429 and a 503 ask for; whole seconds, default 1s
//
// Without a seed it takes one by chance, which String tells. An empty text is the
// zero Spec.
func Parse(text string) (Spec, error) {
	if strings.TrimSpace(text) == "" {
		return Spec{}, nil
	}
	s := Spec{rules: map[Kind]rule{}, seed: rand.Uint64N(1_000_000), retryAfter: defaultRetryAfter}
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return Spec{}, fmt.Errorf("%q is not NAME=VALUE, such as conflict=10%%", part)
		}
		if slices.Contains(seen, name) {
			return Spec{}, fmt.Errorf("%s is given twice", name)
		}
		seen = append(seen, name)
		if err := s.set(name, value); err != nil {
			return Spec{}, fmt.Errorf("%q: %w", part, err)
		}
	}
	if s.Empty() {
		return Spec{}, fmt.Errorf("%q names no fault; the faults are %s", text, names())
	}
	return s, nil
}

// set takes one part.
func (s *Spec) set(name, value string) (err error) {
	kind := Kind(name)
	switch {
	case name == seedName:
		if s.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return fmt.Errorf("a seed is a whole number, not %q", value)
		}
	case name == retryAfterName:
		if s.retryAfter, err = time.ParseDuration(value); err != nil || s.retryAfter < 0 || s.retryAfter%time.Second != 0 {
			return fmt.Errorf("whole seconds such as 2s are asked for, not %q", value)
		}
	case slices.Contains(timed, kind):
		s.rules[kind], err = parseTimed(value)
	case slices.Contains(kinds, kind):
		var r rule
		err = r.parseRate(value)
		s.rules[kind] = r
	default:
		return fmt.Errorf("there is no fault %q; the faults are %s, and the settings %s and %s", name, names(), seedName, retryAfterName)
	}
	return err
}

func names() string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// parseTimed reads MIN[-MAX][@RATE].
func parseTimed(text string) (rule, error) {
	span, rate, ok := strings.Cut(text, "@")
	if !ok {
		rate = always
	}
	var r rule
	from, to, ok := strings.Cut(span, "-")
	if !ok {
		to = from
	}
	var err error
	for _, end := range []struct {
		text string
		into *time.Duration
	}{{from, &r.min}, {to, &r.max}} {
		if *end.into, err = time.ParseDuration(end.text); err != nil || *end.into <= 0 {
			return rule{}, fmt.Errorf("%q is no time: write one such as 50ms, or two such as 10ms-200ms", span)
		}
	}
	if r.max < r.min {
		return rule{}, fmt.Errorf("%q begins with the longer time", span)
	}
	return r, r.parseRate(rate)
}

// parseRate reads P% or Nx.
func (r *rule) parseRate(text string) error {
	if count, ok := strings.CutSuffix(text, "x"); ok {
		n, err := strconv.Atoi(count)
		if err == nil && n > 0 && isDigits(count) {
			r.first = n
			return nil
		}
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(percent, 64)
		if err == nil && p > 0 && p <= 100 && isDigits(strings.Replace(percent, ".", "", 1)) {
			r.share = p / 100
			return nil
		}
	}
	return fmt.Errorf("%q is no rate: write a share above 0%% and up to 100%%, such as 10%% or 0.5%%, or how many times from the first on, such as 3x", text)
}

// isDigits keeps out what the parsers of numbers take besides: signs, exponents,
// underscores.
func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// Empty tells that nothing is injected.
func (s Spec) Empty() bool { return len(s.rules) == 0 }

// String is the Spec as Parse reads it, with its seed.
func (s Spec) String() string {
	if s.Empty() {
		return ""
	}
	var parts []string
	for _, k := range kinds {
		if r, ok := s.rules[k]; ok {
			parts = append(parts, string(k)+"="+r.String())
		}
	}
	if s.retryAfter != defaultRetryAfter {
		parts = append(parts, retryAfterName+"="+s.retryAfter.String())
	}
	return strings.Join(append(parts, seedName+"="+strconv.FormatUint(s.seed, 10)), ",")
}

func (r rule) String() string {
	rate := strconv.FormatFloat(r.share*100, 'f', -1, 64) + "%"
	if r.first > 0 {
		rate = strconv.Itoa(r.first) + "x"
	}
	switch {
	case r.max == 0:
		return rate
	case r.min == r.max:
		return r.min.String() + "@" + rate
	}
	return r.min.String() + "-" + r.max.String() + "@" + rate
}
