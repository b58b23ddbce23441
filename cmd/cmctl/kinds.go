package main

import (
	"slices"
	"strings"
)

// otherKinds are words for what kubectl also deals with. A person who types one
// may mean that, and not a ConfigMap of this name.
var otherKinds = strings.Fields(`all
	pod pods po deployment deployments deploy replicaset replicasets rs
	statefulset statefulsets sts daemonset daemonsets ds
	job jobs cronjob cronjobs cj
	secret secrets serviceaccount serviceaccounts sa
	service services svc endpoints ep ingress ingresses ing networkpolicy networkpolicies netpol
	namespace namespaces ns node nodes no event events ev
	persistentvolume persistentvolumes pv persistentvolumeclaim persistentvolumeclaims pvc
	role roles rolebinding rolebindings clusterrole clusterroles
	customresourcedefinition customresourcedefinitions crd crds`)

func isOtherKind(word string) bool { return slices.Contains(otherKinds, word) }
