package types

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HistoryKind is the kind of a HistoryList.
const HistoryKind = "ConfigMapHistory"

// HistoryList is what GET .../configmaps/{name}/history answers: where each
// kept version of one ConfigMap came from, newest first. It carries no data;
// the content of a version is read with ?resourceVersion=V on the same path.
type HistoryList struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        HistoryMeta    `json:"metadata"`
	Items           []HistoryEntry `json:"items"`
}

// HistoryMeta names the object whose history it is, and in ResourceVersion the
// state of the server at which it was read.
type HistoryMeta struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	ResourceVersion string `json:"resourceVersion"`
}

// HistoryEntry is one version of a ConfigMap: the write that made it.
type HistoryEntry struct {
	// ResourceVersion is the version that the write made.
	ResourceVersion string `json:"resourceVersion"`
	// UID is the object's uid in that version: another uid is another object of
	// the same name. A deletion has the uid of what it deleted.
	UID types.UID `json:"uid,omitempty"`
	// Verb is what was asked: create, update, patch, apply or delete.
	Verb string `json:"verb"`
	// FieldManager is who the writing program said it was.
	FieldManager string `json:"fieldManager"`
	// User is the authenticated user, empty where the server asks nobody.
	User string `json:"user,omitempty"`
	// Time is when the server took the write.
	Time HistoryTime `json:"time"`
	// WriteID is the Cmctl-Write-Id of the request, empty if it sent none.
	WriteID string `json:"writeID,omitempty"`
	// Deleted marks the version in which the object went away.
	Deleted bool `json:"deleted,omitempty"`
}
