package server

import (
	"example.com/cmctl/pkg/server/fieldmanager"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// fieldManagers are one for each resource.
func fieldManagers() map[*types.Resource]*fieldmanager.Manager {
	managers := map[*types.Resource]*fieldmanager.Manager{}
	for _, r := range types.Resources {
		m, err := fieldmanager.New(r)
		if err != nil {
			panic(err) // the schema is part of the program
		}
		managers[r] = m
	}
	return managers
}

// manage brings next's managedFields up to date: the fields in which it differs
// from old belong to the manager that writes. old is nil for a create.
func (s *Server) manage(res *types.Resource, old, next types.Object, meta store.Meta) error {
	if err := types.LimitManagedFields(next, old); err != nil {
		return err
	}
	s.fields[res].Update(old, next, meta.Manager, meta.Time)
	return nil
}
