// Package retry is the capped read-modify-write loop of an API whose writes are
// conditional on the version they were made from. It knows no HTTP: what is read
// and written is a Target.
//
// The promise is that no update is lost silently and none is made twice:
//
//   - An edit is a function, applied anew to each fresh copy. A body that the
//     server refused is never sent again.
//   - A write whose answer was lost has an unknown outcome until it is proven:
//     by the version being still the one sent (then, and only then, the same
//     body goes out again), or by the write id in the server's history. What
//     can't be proven ends in an OutcomeUnknownError, never in a guess.
//   - An object that was deleted and recreated is another object.
//   - A caller's own condition, Options.Want, is decided by the server, once.
//   - Conflicts and delays asked for by the server are capped, apart, and giving
//     up is an error that holds the server's last answer. The caps never end the
//     finding out about a lost answer: that has a time of its own.
//
// A counter that many processes increment:
//
//	_, err := retry.Update(ctx, flags, func(_ context.Context, cm *types.ConfigMap) (*types.ConfigMap, error) {
//		next := cm.DeepCopy()
//		n, err := strconv.Atoi(cm.Data["count"])
//		if err != nil {
//			return nil, err
//		}
//		next.Data["count"] = strconv.Itoa(n + 1)
//		return next, nil
//	}, retry.Options{Computed: true})
package retry
