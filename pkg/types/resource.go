package types

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is what every served object is: a *ConfigMap or a *Namespace.
type Object interface {
	runtime.Object
	metav1.Object
}

// Resource is one type of object that the API serves: what it is called on the
// wire, and the rules that its objects follow. There are two, ConfigMaps and
// Namespaces; they are shared and never change.
type Resource struct {
	Plural     string // in paths and in most messages
	Singular   string
	Kind       string // in bodies, and in the other messages
	ListKind   string
	ShortNames []string
	Namespaced bool

	object         reflect.Type // of the struct
	list           reflect.Type
	fillIn         func(Object)
	prepareCreate  func(Object)
	prepareUpdate  func(next, old Object)
	validate       func(Object) field.ErrorList
	validateUpdate func(next, old Object) field.ErrorList
}

// ConfigMaps are what the server is for.
var ConfigMaps = &Resource{
	Plural: "configmaps", Singular: "configmap", Kind: Kind, ListKind: ListKind, ShortNames: []string{"cm"}, Namespaced: true,
	object: reflect.TypeFor[corev1.ConfigMap](), list: reflect.TypeFor[corev1.ConfigMapList](),
	fillIn:        func(o Object) { fillInConfigMap(o.(*ConfigMap)) },
	prepareCreate: func(Object) {},
	prepareUpdate: func(Object, Object) {},
	validate:      func(o Object) field.ErrorList { return ValidateConfigMap(o.(*ConfigMap)) },
	validateUpdate: func(next, old Object) field.ErrorList {
		return ValidateUpdate(next.(*ConfigMap), old.(*ConfigMap))
	},
}

// Namespaces hold ConfigMaps.
var Namespaces = &Resource{
	Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ListKind: "NamespaceList", ShortNames: []string{"ns"},
	object: reflect.TypeFor[corev1.Namespace](), list: reflect.TypeFor[corev1.NamespaceList](),
	fillIn:        func(o Object) { nameLabel(o.(*Namespace)) },
	prepareCreate: func(o Object) { prepareNamespace(o.(*Namespace)) },
	prepareUpdate: func(next, old Object) { keepNamespace(next.(*Namespace), old.(*Namespace)) },
	validate:      func(o Object) field.ErrorList { return validateNamespace(o.(*Namespace)) },
	validateUpdate: func(next, old Object) field.ErrorList {
		return validateNamespaceUpdate(next.(*Namespace), old.(*Namespace))
	},
}

// Resources are all there are.
var Resources = []*Resource{ConfigMaps, Namespaces}

// GroupResource is the resource as Kubernetes' own error types name it.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Resource: r.Plural}
}

// GroupVersionKind is the kind as a client's scheme knows it.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: APIVersion, Kind: r.Kind}
}

// New is an empty object with its type set.
func (r *Resource) New() Object {
	o := reflect.New(r.object).Interface().(Object)
	o.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	return o
}

// NewList is an empty list with its type set.
func (r *Resource) NewList() runtime.Object {
	l := reflect.New(r.list).Interface().(runtime.Object)
	l.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: APIVersion, Kind: r.ListKind})
	return l
}

// PrepareCreate sets what every new object of this type has, whatever the body
// said.
func (r *Resource) PrepareCreate(o Object) { r.prepareCreate(o) }

// PrepareUpdate carries over what an update can't change.
func (r *Resource) PrepareUpdate(next, old Object) { r.prepareUpdate(next, old) }

// Validate checks an object whose name is set, and its namespace where it has
// one, with the field paths and causes of Kubernetes. Errors come in a fixed
// order.
func (r *Resource) Validate(o Object) field.ErrorList {
	if errs := limitLists(o, nil); len(errs) > 0 {
		return errs
	}
	return r.validate(o)
}

// ValidateUpdate checks that next may replace old. Both have what the server
// alone sets: uid, creationTimestamp and a resourceVersion.
func (r *Resource) ValidateUpdate(next, old Object) field.ErrorList {
	if errs := limitLists(next, old); len(errs) > 0 {
		return errs
	}
	return r.validateUpdate(next, old)
}
