package server

import (
	"context"
	"errors"
	"strconv"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// read answers GET on an object.
func (s *Server) read(r *request) (answer, error) {
	at, err := s.atLeast(r.context(), r.query.Get("resourceVersion"))
	if err != nil {
		return answer{}, err
	}
	rec, err := s.stored(r.context(), r.resource, r.namespace, r.name, at)
	if err != nil {
		return answer{}, err
	}
	return objectAnswer(0, encoded(r.resource, rec), rec.Revision.String()), nil
}

// atLeast is the point to read at for whoever asks for a version: the newest state
// without one, any state for "0", and else one that is not older, which is what
// Kubernetes promises. It refuses a version that is not reached yet.
func (s *Server) atLeast(ctx context.Context, version string) (store.Revision, error) {
	switch version {
	case "":
		return 0, nil
	case "0":
		return store.Any, nil
	}
	rev, err := parseRevision(version)
	if err != nil {
		return 0, types.BadVersion("resourceVersion", version)
	}
	return store.Any, s.reach(ctx, rev)
}

// reach waits until reads of any state see rev.
func (s *Server) reach(ctx context.Context, rev store.Revision) error {
	err := s.store.Reach(ctx, rev)
	if errors.Is(err, store.ErrFuture) {
		return types.FutureVersion(rev.String(), s.store.State().Current.String())
	}
	return err
}

// parseRevision reads a version that a client gave back. Only a read at a point
// in time needs its number; writes compare it as it is.
func parseRevision(version string) (store.Revision, error) {
	n, err := strconv.ParseUint(version, 10, 63)
	return store.Revision(n), err
}
