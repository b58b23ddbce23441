package types_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/cmctl/pkg/types"
)

// What decoders would replace by U+FFFD is refused, with its place.
func TestDecodeRefusesWhatIsNoUnicode(t *testing.T) {
	body := func(value string) string { return `{"metadata":{"name":"flags"},"data":{"k":"` + value + `"}}` }
	for value, want := range map[string]string{
		"\xff":         "byte 0xff at offset 42",
		"caf\xe9":      "byte 0xe9 at offset 45",
		"\xc0\xaf":     "byte 0xc0 at offset 42",
		"\xed\xa0\x80": "byte 0xed at offset 42",
	} {
		for _, media := range []string{types.MediaJSON, types.MediaYAML} {
			_, _, err := decodeConfigMap([]byte(body(value)), media)
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q as %s: got %v, want %s", value, media, err, want)
			}
		}
	}
	for value, want := range map[string]string{`\ud83d\ude00`: "\U0001f600", `\\ud800`: `\ud800`, "\ufffd": "\ufffd", `\ufffd`: "\ufffd", `\ud800`: "\ufffd", `\u0000`: "\x00"} {
		cm, _, err := decodeConfigMap([]byte(body(value)), types.MediaJSON)
		if err != nil || cm.Data["k"] != want {
			t.Errorf("%q: got %+v, %v", value, cm, err)
		}
	}
}

func TestDocumentsRefuseHalfOfASurrogatePair(t *testing.T) {
	for value, want := range map[string]string{
		`\ud800`:             `\ud800 at offset 7`,
		`\uDFFF\ud800`:       `\uDFFF at offset 7`,
		`\\\ud83d\u0041`:     `\ud83d at offset 9`,
		`\ud83d\ud83d\ude00`: `\ud83d at offset 7`,
		`\ud83d`:             `binaryData, as base64`,
		`\ud83d\ude00`:       "",
		`\\ud800`:            "",
		`\\`:                 "",
		`a\n`:                "",
	} {
		_, err := types.ParseDocument([]byte(`{"a": "` + value + `"}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

func TestDecodeRefusesProtobufThatIsNoUnicode(t *testing.T) {
	for want, cm := range map[string]*types.ConfigMap{
		"data[k] is not UTF-8 text: byte 0xff at offset 1": {Data: map[string]string{"k": "a\xff"}},
		"a key of data":            {Data: map[string]string{"\xff": ""}},
		"metadata.annotations[a]":  {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "\xff"}}},
		"metadata.finalizers[0]":   {ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"\xff"}}},
		"metadata.ownerReferences": {ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: "\xff"}}}},
		"":                         {BinaryData: map[string][]byte{"k": {0xff}, "empty": nil}},
	} {
		raw, err := cm.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, Raw: raw}
		body, err := envelope.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := decodeConfigMap(append([]byte("k8s\x00"), body...), types.MediaProtobuf)
		switch {
		case want == "":
			if err != nil || len(got.BinaryData["k"]) != 1 || got.BinaryData["empty"] == nil {
				t.Errorf("bytes: got %+v, %v", got, err)
			}
		case !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want):
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Which dropped fields are too grave for a warning.
func TestMisread(t *testing.T) {
	unknown := func(f string) string { return `unknown field "` + f + `"` }
	double := func(f string) string { return `duplicate field "` + f + `"` }
	for _, c := range []struct {
		what    string
		misread func([]string) []string
		refused []string
		warned  []string
	}{
		{"update", types.MisreadUpdate,
			[]string{unknown("metadata.ResourceVersion"), unknown("metadata.UID"), double("metadata"), double("metadata.uid"),
				double("metadata.resourceVersion")},
			[]string{unknown("spec"), unknown("Data"), unknown("metadata.bogus"), double("data"), double("data.k"),
				double("metadata.labels"), unknown("resourceVersion")}},
		{"deletion", types.MisreadDeletion,
			[]string{unknown("Preconditions"), unknown("precondition"), unknown("preconditons"), unknown("dryrun"), unknown("dry_run"),
				unknown("propogationPolicy"), unknown("uid"), unknown("UID"), unknown("resourceVersion"), unknown("metadata"),
				unknown("preconditions.bogus"), double("dryRun"), double("preconditions.uid")},
			[]string{unknown("bogus"), unknown("spec"), unknown("x"), unknown("name")}},
	} {
		for _, p := range c.refused {
			if got := c.misread([]string{p}); len(got) != 1 {
				t.Errorf("%s: %s is let through", c.what, p)
			}
		}
		if got := c.misread(c.warned); len(got) != 0 {
			t.Errorf("%s: refused: %q", c.what, got)
		}
	}
}
