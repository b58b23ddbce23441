package openapi

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// The names of the definitions of what is this server's own.
const (
	historyModel      = "com.example.cmctl.v1." + types.HistoryKind
	historyMetaModel  = "com.example.cmctl.v1.HistoryMeta"
	historyEntryModel = "com.example.cmctl.v1.HistoryEntry"
)

// historyDefinitions are the schemas of types.HistoryList and its parts.
func historyDefinitions() map[string]*spec.Schema {
	list := object("Where each kept version of one ConfigMap came from, newest first.", map[string]spec.Schema{
		"apiVersion": *text("The version of this format."),
		"kind":       *text(types.HistoryKind),
		"metadata":   *spec.RefSchema(DefinitionPrefix + historyMetaModel),
		"items":      *spec.ArrayProperty(spec.RefSchema(DefinitionPrefix + historyEntryModel)),
	}, "metadata", "items")
	list.AddExtension("x-kubernetes-group-version-kind", []any{groupVersionKind("", types.HistoryKind)})
	return map[string]*spec.Schema{
		historyModel: list,
		historyMetaModel: object("The object whose history it is.", map[string]spec.Schema{
			"name":            *text("The name of the ConfigMap."),
			"namespace":       *text("The namespace of the ConfigMap."),
			"resourceVersion": *text("The state of the server at which the history was read."),
		}, "name", "namespace", "resourceVersion"),
		historyEntryModel: object("One version of a ConfigMap: the write that made it.", map[string]spec.Schema{
			"resourceVersion": *text("The version that the write made."),
			"uid":             *text("The object's uid in that version. Another uid is another object of the same name."),
			"verb":            *text("What was asked: create, update, patch, apply or delete."),
			"fieldManager":    *text("Who the writing program said it was."),
			"user":            *text("The authenticated user, absent where the server asks nobody."),
			"time":            *spec.DateTimeProperty().WithDescription("When the server took the write."),
			"writeID":         *text("The Cmctl-Write-Id of the request, absent if it sent none."),
			"deleted":         *spec.BooleanProperty().WithDescription("Marks the version in which the object went away."),
		}, "resourceVersion", "verb", "fieldManager", "time"),
	}
}

func object(description string, properties map[string]spec.Schema, required ...string) *spec.Schema {
	return new(spec.Schema).Typed("object", "").WithDescription(description).WithProperties(properties).WithRequired(required...)
}

func text(description string) *spec.Schema { return spec.StringProperty().WithDescription(description) }
