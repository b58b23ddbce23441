package types

import (
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Only what could be something else is shown to the library. It must say of all the
// rest that it is a string.
func TestWhatIsNoNumberAndNoWordIsAString(t *testing.T) {
	words := strings.Fields("y Y yes Yes YES n N no No NO on On ON off OFF true True TRUE false False FALSE null Null NULL ~ .inf -.Inf .NaN " +
		"name type Number nullable yesterday falsey offset F-1 t_1 n.a 0 0755 0o17 0x1F 1_000 1e3 +1 -1 1. .5 ~a - + 1.2.3 2026-11-30 a1 ü Ünull")
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		word := make([]byte, 1+random.IntN(6))
		for i := range word {
			word[i] = "yYnNoOtTfFeEsSuUlLrRaA019.-+_~x"[random.IntN(31)]
		}
		words = append(words, string(word))
	}
	for _, word := range words {
		asJSON, err := yaml.YAMLToJSON([]byte("[ " + word + " ]"))
		if isString := err == nil && asJSON[1] == '"'; !resolvable(word) && !isString {
			t.Errorf("%s is %s, %v, and was not shown to the library", word, asJSON, err)
		}
	}
}
