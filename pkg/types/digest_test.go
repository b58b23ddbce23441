package types_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// A record of digests leads to the same decisions as one that holds everything.
func TestDigestsDecideAsAFullRecordDoes(t *testing.T) {
	options := []types.ApplyOptions{{}, {Side: types.FileSide}, {Side: types.LiveSide}, {Exact: true}, {Exact: true, Side: types.FileSide}}
	drawn(t, func(t *testing.T, draw func() types.Document) {
		base, file, live := draw(), draw(), draw()
		digests, err := types.ParseDigests(types.DigestsOf(base).String())
		if err != nil {
			t.Fatal(err)
		}
		o := options[0]
		options = append(options[1:], o) // each in turn
		full, short := types.Apply(types.RecordOf(base), file, live, o), types.Apply(digests, file, live, o)
		for i, d := range short.Drifts {
			if _, known := d.Base.(types.Digest); known != (d.Base != nil) {
				t.Errorf("of %s it knows %v", d.Field, d.Base)
			}
			if i < len(full.Drifts) && (d.Base == nil) == (full.Drifts[i].Base == nil) {
				short.Drifts[i].Base = full.Drifts[i].Base
			}
		}
		if told(short) != told(full) || !short.Document.Equal(full.Document) {
			t.Errorf("%+v: digests do %s\nfull does %s", o, told(short), told(full))
		}
	})
}

func TestExactRemovesTheDataThatNobodyApplied(t *testing.T) {
	live := `{"data":{"a":"1","mine":"x"},"binaryData":{"b":"MQ=="},"metadata":{"labels":{"l":"1"},"annotations":{"n":"1"}},"immutable":false}`
	for _, c := range []struct{ name, base, want string }{
		{"unrecorded keys go, the rest is kept", `{"data":{"a":"1"}}`,
			`change data[b] MQ==><nil>; change data[mine] x><nil>; kept metadata.labels[l]; kept metadata.annotations[n]; kept immutable`},
		{"a key changed since it was applied is somebody's", `{"data":{"a":"1","mine":"y"},"binaryData":{"b":"MQ=="}}`,
			`change data[b] MQ==><nil>; conflict data[mine] y:<nil>|x; kept metadata.labels[l]; kept metadata.annotations[n]; kept immutable`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := types.Apply(types.RecordOf(parse(t, c.base)), parse(t, `{"data":{"a":"1"}}`), parse(t, live), types.ApplyOptions{Exact: true})
			if got := told(a); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestADigestIsWhatSha256sumSays(t *testing.T) {
	sum := sha256.Sum256([]byte("1"))
	want := types.Digest(hex.EncodeToString(sum[:8]))
	r := types.DigestsOf(parse(t, `{"data":{"text":"1"},"binaryData":{"bytes":"MQ=="},"metadata":{"labels":{"l":"1"}}}`))
	for _, f := range []types.Field{dataField("text"), dataField("bytes"), labelField("l")} {
		if got := r.Value(f); got != want {
			t.Errorf("%s has %v, want %v", f, got, want)
		}
	}
	if got := r.Value(dataField("l")); got != nil {
		t.Errorf("a key that was not applied has %v", got)
	}
}

// A ConfigMap of ten thousand keys, each as long as a key can be, has a record
// that an annotation can hold.
func TestDigestsOfManyKeysFitInAnAnnotation(t *testing.T) {
	d := types.NewDocument("n", "flags")
	for i := range 10_000 {
		d.Set(dataField(fmt.Sprintf("%0253d", i)), "1")
	}
	if size := len(types.DigestsOf(d).String()); size > 200<<10 {
		t.Errorf("it takes %d bytes", size)
	}
}

func TestDigestsAreReadStrictly(t *testing.T) {
	good := types.DigestsOf(parse(t, `{"data":{"a":"1","b":"2"}}`)).String()
	for _, text := range []string{"", "x", "v2:" + good[3:], good + "=", good[:len(good)-2], good[:10] + "\n" + good[10:], strings.ToLower(good) + "!",
		"v1:" + "AAAAAAAAAAAAAAAAAAE" + "AAAAAAAAAAAAAAAAAAA"} {
		if _, err := types.ParseDigests(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	empty, err := types.ParseDigests("v1:")
	if err != nil || empty.Value(dataField("a")) != nil || !empty.Same(dataField("a"), nil) {
		t.Errorf("of nothing applied: %v", err)
	}
}

func FuzzParseDigests(f *testing.F) {
	f.Add("v1:")
	f.Add("v1:AAAAAAAAAAAAAAAAAAE")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := types.ParseDigests(text)
		if err == nil && r.String() != text {
			t.Errorf("%q is written as %q", text, r)
		}
	})
}
