package server

import (
	"context"

	"example.com/cmctl/pkg/server/store"
)

// place is what a commit must hold and write besides a new object, so that its
// namespace is there and takes it.
func (s *Server) place(ctx context.Context, r *request, name string) (store.Txn, error) {
	return store.Txn{}, nil
}

// deleteNamespace answers DELETE on a namespace.
func (s *Server) deleteNamespace(r *request) (answer, error) {
	return s.delete(r)
}
