package linear

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The checker itself must be able to refuse: a lost update is not linearizable.
func TestTheCheckerRefusesALostUpdate(t *testing.T) {
	put := func(sent, got, content string, at int64) porcupine.Operation {
		return porcupine.Operation{ClientId: int(at), Call: at, Return: at + 1,
			Input:  request{verb: "put", key: "k", sent: sent, content: content},
			Output: reply{version: got, content: content}}
	}
	history := []porcupine.Operation{
		{Call: 0, Return: 1, Input: request{verb: "create", key: "k", content: "a"}, Output: reply{version: "1", content: "a"}},
		put("1", "2", "b", 2),
		put("1", "3", "c", 4), // made from version 1 and taken all the same
	}
	if porcupine.CheckOperations(objectModel(), history) {
		t.Error("two writes made from the same version passed")
	}
}
