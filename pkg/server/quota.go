package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// quotasOn are the quotas that a record must keep to. Deletions have none, not even
// those that only mark an object: they are how room is made.
func (s *Server) quotasOn(rec store.Record) []quota.Quota {
	if s.options.Quotas == nil || rec.Deleted || rec.Verb == "delete" {
		return nil
	}
	namespace, _ := splitKey(types.ConfigMaps, rec.Key)
	if !strings.HasPrefix(string(rec.Key), string(prefixOf(types.ConfigMaps, ""))) {
		return nil
	}
	return s.options.Quotas(namespace)
}

// limitOf is a quota as the store judges it.
func limitOf(key store.Key, q quota.Quota) store.Limit {
	return store.Limit{Collection: store.CollectionOf(key), Most: q.Most()}
}

// overQuota is the refusal of a record that a store did not take, or else err as it is.
func overQuota(err error, key store.Key, quotas []quota.Quota) error {
	var full *store.LimitError
	if !errors.As(err, &full) {
		return err
	}
	for _, q := range quotas {
		if limitOf(key, q) == full.Limit {
			_, name := splitKey(types.ConfigMaps, key)
			return types.ConfigMaps.Forbidden(name, q.Exceeded(full.Used, full.Added))
		}
	}
	return err
}

// rehearse refuses a dry run of what quotas would refuse. was is the length of what
// the record takes the place of, which is there unless was is below 0.
func (s *Server) rehearse(ctx context.Context, rec store.Record, was int) error {
	quotas := s.quotasOn(rec)
	if len(quotas) == 0 {
		return nil
	}
	used, err := s.store.Usage(ctx, store.CollectionOf(rec.Key))
	if err != nil {
		return fmt.Errorf("read what %s holds: %w", store.CollectionOf(rec.Key), err)
	}
	added := store.Usage{Records: 1, Bytes: int64(len(rec.Value))}
	if was >= 0 {
		added = store.Usage{Bytes: int64(len(rec.Value) - was)}
	}
	for _, q := range quotas {
		if limit := limitOf(rec.Key, q); !limit.Allows(used, added) {
			return overQuota(&store.LimitError{Limit: limit, Used: used, Added: added}, rec.Key, quotas)
		}
	}
	return nil
}
