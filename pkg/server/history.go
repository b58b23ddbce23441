package server

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// history answers GET on an object's history: where each kept version came
// from, or, with ?resourceVersion=V, the whole object as it was in V.
func (s *Server) history(r *request) (answer, error) {
	if version := r.query.Get("resourceVersion"); version != "" {
		return s.pastVersion(r, version)
	}
	records, err := s.versions(r)
	if err != nil {
		return answer{}, err
	}
	list := types.HistoryList{
		TypeMeta: metav1.TypeMeta{Kind: types.HistoryKind, APIVersion: types.APIVersion},
		Metadata: types.HistoryMeta{
			Name: r.name, Namespace: r.namespace, ResourceVersion: s.store.State().Current.String(),
		},
		Items: make([]types.HistoryEntry, 0, len(records)),
	}
	for _, rec := range records {
		entry, err := historyEntry(rec)
		if err != nil {
			return answer{}, err
		}
		list.Items = append(list.Items, entry)
	}
	return marshalled(list)
}

// versions reads what is kept of an object, newest first.
func (s *Server) versions(r *request) ([]store.Record, error) {
	if !possible(r.namespace, r.name) {
		return nil, types.NotFound(r.name)
	}
	records, err := s.store.History(r.context(), keyOf(r.namespace, r.name), 0)
	if errors.Is(err, store.ErrNotFound) || (err == nil && len(records) == 0) {
		return nil, types.NotFound(r.name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of ConfigMap %s/%s: %w", r.namespace, r.name, err)
	}
	return records, nil
}

func historyEntry(rec store.Record) (types.HistoryEntry, error) {
	entry := types.HistoryEntry{
		ResourceVersion: rec.Revision.String(),
		Verb:            rec.Verb,
		FieldManager:    rec.Manager,
		User:            rec.User,
		Time:            types.HistoryTime{Time: rec.Time},
		WriteID:         rec.WriteID,
		Deleted:         rec.Deleted,
	}
	if rec.Deleted {
		return entry, nil
	}
	cm, err := encoded(rec).DecodeHead("")
	if err != nil {
		return entry, fmt.Errorf("read the history of %s: %w", rec.Key, err)
	}
	entry.UID = cm.UID
	return entry, nil
}

// pastVersion answers one version of an object, exactly.
func (s *Server) pastVersion(r *request, version string) (answer, error) {
	rev, err := parseRevision(version)
	if err != nil || rev == 0 {
		return answer{}, types.BadVersion("resourceVersion", version)
	}
	records, err := s.versions(r)
	if err != nil {
		return answer{}, err
	}
	for _, rec := range records {
		switch {
		case rec.Revision != rev:
		case rec.Deleted:
			return answer{}, types.VersionDeleted(r.name, version)
		default:
			return objectAnswer(0, encoded(rec), version), nil
		}
	}
	oldest, state := records[len(records)-1], s.store.State()
	switch {
	case rev > state.Current:
		return answer{}, types.FutureVersion(version, state.Current.String())
	// Before the oldest that is kept there was more, or may have been: an object
	// of that name that was deleted.
	case rev < oldest.Revision && (oldest.Verb != "create" || rev <= state.Compacted):
		return answer{}, types.VersionExpired(r.name, version, oldest.Revision.String())
	}
	return answer{}, types.VersionNotFound(r.name, version)
}
