package main

import (
	"context"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
)

// checkVersion refuses flags that don't go with --version.
func (o *getOptions) checkVersion(given bool) error {
	switch {
	case !given:
		return nil
	case o.version == "":
		return usagef("--version needs a version; 'cmctl history NAME' lists them")
	case len(o.names) != 1:
		return usagef("--version is one of one object: give one NAME with it")
	case o.watch.on:
		return usagef("--version is as it was; --watch doesn't go with it")
	}
	return nil
}

// asItWas shows an old version of an object.
func (o *getOptions) asItWas(ctx context.Context, conn *connection) error {
	doc, err := conn.past(o.names[0]).version(ctx, o.version)
	switch {
	case err != nil:
	case o.key != "":
		err = o.printKey(doc)
	default:
		err = o.show(output.Objects{Items: []types.Document{doc}})
	}
	return conn.explain(conn.namespace, o.names[0], err)
}
