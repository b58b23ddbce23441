package server

import "example.com/cmctl/pkg/types"

// patch answers PATCH, which is refused by name: a client must not take an
// ignored patch for a done one.
func (s *Server) patch(*request) (answer, error) {
	return answer{}, types.MethodNotAllowed("this server has no PATCH; GET the object, change it, and PUT it " +
		"with the metadata.resourceVersion that was read")
}
