package schema_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/schema"
)

const document = `{"components":{"schemas":{
	"io.k8s.api.core.v1.Pod":{"properties":"not even looked at"},
	"io.k8s.api.core.v1.ConfigMap":{"type":"object","description":"A map.","required":["data"],"properties":{
		"data":{"type":"object","additionalProperties":{"type":"string","default":""},"description":"` + "word word word word word word word word word word word word word word word word word word" + `"},
		"immutable":{"type":"boolean"},
		"metadata":{"description":"About it.","default":{},"allOf":[{"$ref":"#/components/schemas/Meta"}]}}},
	"Meta":{"type":"object","description":"Metadata.","properties":{
		"created":{"allOf":[{"$ref":"#/components/schemas/Time"}],"description":"When."},
		"owners":{"type":"array","items":{"default":{},"allOf":[{"$ref":"#/components/schemas/a.b.Owner"}]}}}},
	"Time":{"type":"string","format":"date-time"},
	"a.b.Owner":{"type":"object","properties":{"uid":{"type":"string","description":"Who."}}}}}}`

func TestFields(t *testing.T) {
	root, err := schema.ConfigMap([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"":                    {"DESCRIPTION:\n    A map.\n", "  data\t<map[string]string> -required-\n", "  immutable\t<boolean>\n", "  metadata\t<Meta>\n    About it.\n"},
		"data":                {"FIELD: data <map[string]string>\n"},
		"metadata":            {"    About it.\n", "  created\t<string>\n    When.\n", "  owners\t<[]Owner>\n"},
		"metadata.owners":     {"FIELD: metadata.owners <[]Owner>", "  uid\t<string>\n    Who.\n"},
		"metadata.owners.uid": {"FIELD: metadata.owners.uid <string>", "    Who.\n"},
	} {
		field, err := root.At(strings.FieldsFunc(path, func(r rune) bool { return r == '.' })...)
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		var b strings.Builder
		if err := field.Write(&b, false); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%q lacks %q:\n%s", path, part, b.String())
			}
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if len(line) > 80 {
				t.Errorf("%q has a line of %d bytes", path, len(line))
			}
		}
	}
	var b strings.Builder
	if err := root.Write(&b, true); err != nil || !strings.Contains(b.String(), "\n    owners\t<[]Owner>\n      uid\t<string>\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestUnknownFieldsAndSchemas(t *testing.T) {
	root, err := schema.ConfigMap([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"none":          `no field "none" in configmap; there are data, immutable, metadata`,
		"metadata.none": `no field "none" in configmap.metadata; there are created, owners`,
		"data.none":     `no field "none": configmap.data has no fields`,
	} {
		_, err := root.At(strings.Split(path, ".")...)
		if !errors.As(err, new(*schema.UnknownFieldError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, text := range []string{"", "{}", "<html>", `{"components":{"schemas":{"io.k8s.api.core.v1.ConfigMap":[]}}}`} {
		if _, err := schema.ConfigMap([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
