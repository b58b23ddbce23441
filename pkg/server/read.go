package server

import (
	"strconv"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// read answers GET on an object.
func (s *Server) read(r *request) (answer, error) {
	if err := s.reached(r.query.Get("resourceVersion")); err != nil {
		return answer{}, err
	}
	rec, err := s.current(r.context(), r.resource, r.namespace, r.name)
	if err != nil {
		return answer{}, err
	}
	return objectAnswer(0, encoded(r.resource, rec), rec.Revision.String()), nil
}

// reached refuses a version that the store is not at yet. A read that asks for
// an older one is answered with the newest, which is what Kubernetes promises:
// not older than.
func (s *Server) reached(version string) error {
	if version == "" || version == "0" {
		return nil
	}
	rev, err := parseRevision(version)
	if err != nil {
		return types.BadVersion("resourceVersion", version)
	}
	if current := s.store.State().Current; rev > current {
		return types.FutureVersion(version, current.String())
	}
	return nil
}

// parseRevision reads a version that a client gave back. Only a read at a point
// in time needs its number; writes compare it as it is.
func parseRevision(version string) (store.Revision, error) {
	n, err := strconv.ParseUint(version, 10, 63)
	return store.Revision(n), err
}
