package client

import "testing"

func TestMaskBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"a":"xyz"},"binaryData":{"b":"AA=="},"metadata":{"name":"n","annotations":{"c":"d"},"labels":{"e":"f"}}}`: `{"binaryData":{"b":"(4 bytes)"},"data":{"a":"(3 bytes)"},"metadata":{"annotations":{"c":"(1 bytes)"},"labels":{"e":"f"},"name":"n"}}`,
		`{"kind":"List","items":[{"data":{"a":"<&>"}}]}`:                                                                    `{"items":[{"data":{"a":"(3 bytes)"}}],"kind":"List"}`,
		`{"data":{"a":null},"immutable":true}`:                                                                              `{"data":{"a":null},"immutable":true}`,
		`{"data":"secret"}`:                                                                                                 `{"data":"(6 bytes)"}`,
		`[{"op":"add","path":"/data/a","value":"secret"}]`:                                                                  `[{"op":"add","path":"/data/a","value":"(6 bytes)"}]`,
		`[{"op":"replace","path":"/data","value":{"a":"secret","b":["x",1]}}]`:                                              `[{"op":"replace","path":"/data","value":{"a":"(6 bytes)","b":["(1 bytes)","(1 bytes)"]}}]`,
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:data":{"f:a":{}}}}]}}`:                                               `{"metadata":{"managedFields":[{"fieldsV1":{"f:data":{"f:a":{}}}}]}}`,
		`{"code":12345678901234567890}`:                                                                                     `{"code":12345678901234567890}`,
		"data: {a: secret}":                                                                                                 "(17 bytes)",
		`{"data":{"a":"secret"}} {"data":{"a":"secret"}}`:                                                                   "(47 bytes)",
		`{"data":{"a":"sec`:                                                                                                 "(17 bytes)",
	} {
		if got := maskBody([]byte(body)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
}
