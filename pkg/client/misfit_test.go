package client_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// What does not fit is named as people name it, who need not know Go.
func TestAMisfitIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":1}`:                                       "kind: a number stands where a string belongs",
		`{"immutable":"x"}`:                                "immutable: a string stands where true or false belongs",
		`{"data":true}`:                                    "data: true or false stands where a map belongs",
		`{"data":{"a":["b"]}}`:                             "data: a list stands where a string belongs",
		`{"binaryData":{"a":1}}`:                           "binaryData: a number stands where a string in base64 belongs",
		`{"metadata":{"labels":[1]}}`:                      "metadata.labels: a list stands where a map belongs",
		`{"metadata":{"finalizers":{}}}`:                   "metadata.finalizers: a map stands where a list belongs",
		`{"metadata":{"generation":"1"}}`:                  "metadata.generation: a string stands where a whole number belongs",
		`{"metadata":{"ownerReferences":[{"uid":1}]}}`:     "metadata.ownerReferences.uid: a number stands where a string belongs",
		`{"metadata":{"creationTimestamp":"then"}}`:        `metadata.creationTimestamp: "then" stands where a time such as 2006-01-02T15:04:05Z belongs`,
		`{"metadata":{"deletionTimestamp":"then"}}`:        `metadata.deletionTimestamp: "then" stands where a time such as 2006-01-02T15:04:05Z belongs`,
		`{"metadata":{"managedFields":[{"time":"then"}]}}`: `"then" stands where a time such as 2006-01-02T15:04:05Z belongs`,
		`{"metadata":{"deletionTimestamp":5}}`:             "metadata.deletionTimestamp: a number stands where a string belongs",
		`{"metadata":{"deletionGracePeriodSeconds":"30"}}`: "metadata.deletionGracePeriodSeconds: a string stands where a whole number belongs",
	} {
		d, err := types.ParseDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.ToConfigMap(d)
		var misfit *client.MisfitError
		if !errors.As(err, &misfit) || misfit.Error() != want || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
