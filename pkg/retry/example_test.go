package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"example.com/cmctl/pkg/retry"
)

// A counter that several programs increment. Another one is faster here: the
// first body is refused, and the increment is made anew on what it wrote.
func ExampleUpdate() {
	s := newServer(script{"PUT": {meanwhile(sets("visits", "41"))}}, true)

	increment := func(_ context.Context, fresh doc) (doc, error) {
		n, err := strconv.Atoi("0" + fresh.data["visits"])
		if err != nil {
			return doc{}, err
		}
		return fresh.with("visits", strconv.Itoa(n+1)), nil
	}
	res, err := retry.Update[doc](context.Background(), s, increment, retry.Options{
		Computed: true, // a lost answer must not make it count twice
		Observe: func(e retry.Event) {
			fmt.Printf("%s: attempt %d of %d, sent %q, current %q\n", e.Step, e.Attempt, e.Max, e.Sent, e.Current)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s after %d attempts: %s\n", res.Outcome, res.Attempts, res.Object)
	// Output:
	// reread: attempt 0 of 5, sent "", current "1"
	// refused: attempt 1 of 5, sent "1", current ""
	// reread: attempt 1 of 5, sent "1", current "2"
	// done: attempt 2 of 5, sent "2", current "3"
	// written after 2 attempts: a=1 visits=42
}

// What can't be proven is told, never guessed.
func ExampleOutcomeUnknownError() {
	// The answer is lost, somebody else writes, and there is no history.
	s := newServer(script{"PUT": {fault(lostAfter).then(sets("b", "3"))}}, false)

	_, err := retry.Update[doc](context.Background(), s, increment("visits"), retry.Options{Computed: true})
	var unknown *retry.OutcomeUnknownError
	if errors.As(err, &unknown) {
		fmt.Println(err)
	}
	// Output:
	// the outcome of a write to things "it" made from version 1 is unknown; it is at version 3 now: the answer was lost: connection broke
}

// Whoever comes second goes on with the object of whoever was first.
func ExampleCreateOrGet() {
	s := newServer(nil, true)
	res, err := retry.CreateOrGet[doc](context.Background(), s, doc{data: map[string]string{"a": "2"}}, retry.Options{})
	fmt.Println(res.Outcome, res.Object, err)
	// Output: existing a=1 <nil>
}
