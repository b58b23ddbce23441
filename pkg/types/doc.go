// Package types is the wire vocabulary that the server and its clients share.
// It is Kubernetes' own: ConfigMap, Status and their parts are aliases of the
// types in k8s.io/api and k8s.io/apimachinery, so that a value goes to and from
// other Kubernetes code without conversion, and apimachinery's predicates
// (errors.IsConflict and the like) work on our errors.
//
// What is ours: a constructor for each refusal that the server can give
// (status.go), the rules that a ConfigMap must obey (validate.go), decoding
// that is strict about what it takes and encoding that a store can keep
// (configmap.go), and the history of an object (history.go).
//
//	o, warnings, err := types.ConfigMaps.Decode(body, types.MediaJSON)
//	if err != nil {
//		return err // a *errors.StatusError, ready to be sent
//	}
//	if errs := types.ValidateConfigMap(cm); len(errs) > 0 {
//		return types.ConfigMaps.Invalid(cm.Name, errs)
//	}
//
// The package imports no other package of this project.
package types
