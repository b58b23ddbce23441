package server

import "example.com/cmctl/pkg/types"

// watch answers GET with watch=true on a collection.
func (s *Server) watch(*request) (answer, error) {
	return answer{}, types.MethodNotAllowed("this server has no watch; list again, and compare resourceVersions")
}
