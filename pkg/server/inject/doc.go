// Package inject makes a server misbehave on purpose, so that the authors of
// clients can see what theirs does: a conflict, a slow answer, a connection that
// is cut, an answer that is lost after the write was made, too many requests, an
// expired watch.
//
//	spec, err := inject.Parse("conflict=10%,lost=1%,seed=42")
//	if err != nil {
//		return err // names the part that is wrong
//	}
//	faults := inject.New(spec)
//	handler = faults.Handler(handler, refuse)
//
// What is injected is never a lie about the data: what is refused was not done,
// and what is done is done whole. Chance comes from the seed. Each fault has a
// sequence of its own, so that one more fault changes nothing about when the others
// strike, and the n-th request that a fault may strike is struck or spared in every
// run of one seed.
package inject
