package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// ToConfigMap reads a document as Kubernetes' own type. Fields that the type
// does not have are left behind; the document keeps them. A part of another type is
// a *MisfitError.
func ToConfigMap(d types.Document) (*types.ConfigMap, error) {
	if cm, ok := direct(d); ok {
		return cm, nil
	}
	return throughJSON(d)
}

func throughJSON(d types.Document) (*types.ConfigMap, error) {
	text, err := d.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode configmaps %q: %w", d.Name(), err)
	}
	cm := &types.ConfigMap{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, cm); err != nil {
		return nil, fmt.Errorf("configmaps %q is not a ConfigMap: %w", d.Name(), misfit(d, err))
	}
	return cm, nil
}

// FromConfigMap is the document of a ConfigMap, its kind and apiVersion filled
// in.
func FromConfigMap(cm *types.ConfigMap) (types.Document, error) {
	text, err := json.Marshal(cm)
	if err != nil {
		return nil, fmt.Errorf("encode configmaps %q: %w", cm.Name, err)
	}
	d, err := types.ParseDocument(text)
	if err != nil {
		return nil, fmt.Errorf("decode configmaps %q: %w", cm.Name, err)
	}
	d["apiVersion"], d["kind"] = types.APIVersion, types.Kind
	if cm.CreationTimestamp.IsZero() {
		d.SetMeta("creationTimestamp", nil)
	}
	return d, nil
}

// EditConfigMap makes an edit of documents from one of typed ConfigMaps. The
// function gets a copy whose maps are never nil and changes it in place. Just
// what it changed is carried back into the document, so that fields which the
// type does not know survive. A function that changes nothing writes nothing;
// one that changes the identity, or what only the server sets, is an error.
func EditConfigMap(edit func(cm *types.ConfigMap) error) retry.Edit[types.Document] {
	return func(_ context.Context, fresh types.Document) (types.Document, error) {
		cm, err := ToConfigMap(fresh)
		if err != nil {
			return nil, err
		}
		before, err := FromConfigMap(cm)
		if err != nil {
			return nil, err
		}
		fillMaps(cm)
		if err := edit(cm); err != nil {
			return nil, err
		}
		after, err := FromConfigMap(cm)
		if err != nil {
			return nil, err
		}
		return carry(fresh, before, after)
	}
}

// carry makes in a copy of fresh the changes that lead from before to after.
func carry(fresh, before, after types.Document) (types.Document, error) {
	changes := types.Diff(before, after)
	next := fresh.Clone()
	for _, c := range changes {
		next.Set(c.Field, c.To)
		before.Set(c.Field, c.To)
	}
	// What is different still is no change that an edit can make.
	if !before.Equal(after) {
		return nil, errors.New("the edit changed the ConfigMap's identity, or what only the server sets")
	}
	if len(changes) == 0 {
		return nil, retry.ErrUnchanged
	}
	return next, nil
}

func fillMaps(cm *types.ConfigMap) {
	for _, m := range []*map[string]string{&cm.Data, &cm.Labels, &cm.Annotations} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
}
