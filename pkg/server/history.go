package server

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// history answers GET on an object's history: where each kept version came
// from, or, with ?resourceVersion=V, the whole object as it was in V.
func (s *Server) history(r *request) (answer, error) {
	if version := r.query.Get("resourceVersion"); version != "" {
		return s.pastVersion(r, version)
	}
	heads, err := s.heads(r)
	if err != nil {
		return answer{}, err
	}
	list := types.HistoryList{
		TypeMeta: metav1.TypeMeta{Kind: types.HistoryKind, APIVersion: types.APIVersion},
		Metadata: types.HistoryMeta{
			Name: r.name, Namespace: r.namespace, ResourceVersion: s.store.State().Current.String(),
		},
		Items: make([]types.HistoryEntry, 0, len(heads)),
	}
	for _, head := range heads {
		list.Items = append(list.Items, historyEntry(head))
	}
	return documentAnswer(list)
}

// heads reads what is kept of an object, newest first, without its data.
func (s *Server) heads(r *request) ([]store.Record, error) {
	if !possible(r.namespace, r.name) {
		return nil, r.resource.NotFound(r.name)
	}
	heads, err := s.store.History(r.context(), keyOf(r.resource, r.namespace, r.name), 0)
	if errors.Is(err, store.ErrNotFound) || (err == nil && len(heads) == 0) {
		return nil, r.resource.NotFound(r.name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", described(r.resource, r.namespace, r.name), err)
	}
	return heads, nil
}

func historyEntry(head store.Record) types.HistoryEntry {
	return types.HistoryEntry{
		ResourceVersion: head.Revision.String(),
		UID:             ktypes.UID(head.UID),
		Verb:            head.Verb,
		FieldManager:    head.Manager,
		User:            head.User,
		Time:            types.HistoryTime{Time: head.Time},
		WriteID:         head.WriteID,
		Deleted:         head.Deleted,
	}
}

// pastVersion answers one version of an object, exactly.
func (s *Server) pastVersion(r *request, version string) (answer, error) {
	rev, err := parseRevision(version)
	if err != nil || rev == 0 {
		return answer{}, types.BadVersion("resourceVersion", version)
	}
	if !possible(r.namespace, r.name) {
		return answer{}, r.resource.NotFound(r.name)
	}
	rec, err := s.store.Version(r.context(), keyOf(r.resource, r.namespace, r.name), rev)
	switch {
	case errors.Is(err, store.ErrFuture):
		return answer{}, types.FutureVersion(version, s.store.State().Current.String())
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrCompacted):
		return answer{}, s.noVersion(r, version, err)
	case err != nil:
		return answer{}, fmt.Errorf("read %s at %s: %w", described(r.resource, r.namespace, r.name), version, err)
	case rec.Deleted:
		return answer{}, r.resource.VersionDeleted(r.name, version)
	}
	return objectAnswer(0, encoded(r.resource, rec), version), nil
}

// noVersion words why a version can't be answered. Of an object of which nothing
// is kept it says so, whatever the version.
func (s *Server) noVersion(r *request, version string, why error) error {
	heads, err := s.heads(r)
	if err != nil {
		return err
	}
	if errors.Is(why, store.ErrCompacted) {
		var kept []string
		for _, head := range heads {
			if !head.Deleted {
				kept = append(kept, head.Revision.String())
			}
		}
		return r.resource.VersionExpired(r.name, version, kept)
	}
	return r.resource.VersionNotFound(r.name, version)
}
