// Package client is the client library of the ConfigMap API, for cmserver and
// for a Kubernetes API server alike.
//
// A Target says where the server is and how to authenticate, a Client speaks
// to it, and ConfigMaps has the verbs of one namespace. Objects are Documents,
// so that a field which this release doesn't know survives being read, edited
// and written back. An Object is what the loops of package retry work on: a
// counter that many processes increment, without losing one of their updates
// and without counting one twice, is
//
//	flags := c.ConfigMaps("team-a").Object("flags")
//	_, err := retry.Update(ctx, flags, client.EditConfigMap(func(cm *types.ConfigMap) error {
//		n, err := strconv.Atoi(cm.Data["count"])
//		if err != nil {
//			return err
//		}
//		cm.Data["count"] = strconv.Itoa(n + 1)
//		return nil
//	}), retry.Options{Computed: true})
//
// Watch follows a collection or one object, over broken connections, restarts
// and lost history; docs/watching.md says how.
//
// # Errors
//
// What the server answered is a *StatusError of apimachinery, for errors.As and
// for predicates such as apierrors.IsConflict. An answer that is no Status, such
// as a proxy's page, is an UnexpectedError and passes for none of those: nothing
// but a NotFound of the API itself means that an object is not there. Where no
// answer came there is a ConnectionError. It is inside a retry.UnsentError if the
// request certainly did not leave; else that of a write is inside a retry.LostError,
// for it may have been carried out, and that of a read inside a retry.UnreadError.
//
// A read is made again where Options.Reads says so.
//
// A write is sent once. Nothing below this package repeats it, neither on a
// broken connection nor on a redirect; what a lost answer means is for the
// loops of package retry to find out.
package client
