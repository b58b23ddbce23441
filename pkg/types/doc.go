// Package types is the wire vocabulary that the server and its clients share.
// It is Kubernetes' own: ConfigMap, Status and their parts are aliases of the
// types in k8s.io/api and k8s.io/apimachinery, so that a value goes to and from
// other Kubernetes code without conversion, and apimachinery's predicates
// (errors.IsConflict and the like) work on our errors.
//
// What is ours: the two resources and what they are called (resource.go), a
// constructor for each refusal that the server can give (status.go), the rules
// that objects must obey (validate.go, limits.go), decoding that is strict about
// what it takes (decode.go), encoding that a store can keep (encoded.go), documents
// and their merging (document.go, merge.go, apply.go), and the history of an object
// (history.go).
//
//	o, warnings, err := types.ConfigMaps.Decode(body, types.MediaJSON)
//	if err != nil {
//		return err // a *errors.StatusError, ready to be sent
//	}
//	if errs := types.ConfigMaps.Validate(o); len(errs) > 0 {
//		return types.ConfigMaps.Invalid(o.GetName(), errs)
//	}
//
// The package imports no other package of this project.
package types
