package types

import corev1 "k8s.io/api/core/v1"

// ConfigMap and its parts are Kubernetes' own types.
type (
	// ConfigMap holds text in Data and bytes in BinaryData.
	ConfigMap = corev1.ConfigMap
	// ConfigMapList is what a list answers.
	ConfigMapList = corev1.ConfigMapList
)

// What a ConfigMap is called on the wire.
const (
	APIVersion = "v1"
	Kind       = "ConfigMap"
	ListKind   = "ConfigMapList"
)

// WriteIDHeader is the request header by which a client names one logical
// write, so that it can find it in the object's history if the answer is lost.
const WriteIDHeader = "Cmctl-Write-Id"

// fillInConfigMap gives a decoded ConfigMap what null stands for in it.
func fillInConfigMap(cm *ConfigMap) {
	for key, value := range cm.BinaryData {
		if value == nil {
			cm.BinaryData[key] = []byte{} // as null is "" in data: it would be written as null
		}
	}
}
