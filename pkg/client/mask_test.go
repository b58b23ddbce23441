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
		`{"kind":"Status","code":12345678901234567890}`:                                                                     `{"code":12345678901234567890,"kind":"Status"}`,
		`{"Data":{"a":"secret","name":"secret","n":1},"kind":"ConfigMap"}`:                                                  `{"Data":{"a":"(6 bytes)","n":"(1 bytes)","name":"(6 bytes)"},"kind":"ConfigMap"}`,
		`{"metadata":{"Annotations":{"a":"secret"},"name":{"a":"secret"}},"reason":"secret","op":"secret"}`:                 `{"metadata":{"Annotations":{"a":"(6 bytes)"},"name":{"a":"(6 bytes)"}},"op":"(6 bytes)","reason":"(6 bytes)"}`,
		`{"metadata.name":"secret","metadata":"secret"}`:                                                                    `{"metadata":"(6 bytes)","metadata.name":"(6 bytes)"}`,
		`{"kind":"Status","status":"Failure","reason":"Invalid","code":422,"message":"Invalid value: \"secret\"","details":{"name":"n","causes":[{"reason":"FieldValueInvalid","field":"patch","message":"secret"}]}}`: `{"code":422,"details":{"causes":[{"field":"patch","message":"(6 bytes)","reason":"FieldValueInvalid"}],"name":"n"},"kind":"Status","message":"(23 bytes)","reason":"Invalid","status":"Failure"}`,
		`{"kind":"Table","rows":[{"cells":["n"],"object":{"metadata":{"name":"n"}}}]}`:               `{"kind":"Table","rows":[{"cells":["(1 bytes)"],"object":{"metadata":{"name":"n"}}}]}`,
		`{"kind":"ConfigMapHistory","items":[{"verb":"patch","fieldManager":"m","other":"secret"}]}`: `{"items":[{"fieldManager":"m","other":"(6 bytes)","verb":"patch"}],"kind":"ConfigMapHistory"}`,
		`"secret"`:                         `"(6 bytes)"`,
		`{"unknown":12345678901234567890}`: `{"unknown":"(20 bytes)"}`,
		"data: {a: secret}":                "(17 bytes)",
		`{"data":{"a":"secret"}} {"data":{"a":"secret"}}`: "(47 bytes)",
		`{"data":{"a":"sec`: "(17 bytes)",
	} {
		if got := maskBody([]byte(body)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", body, got, want)
		}
	}
}
