package main

import (
	"context"
	"fmt"
	"slices"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type createOptions struct {
	*factory
	names  []string
	files  []string
	from   fromFlags
	output string
	dryRun string
}

func newCreate(f *factory) *cobra.Command {
	o := &createOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "create {NAME [--from-...] | -f FILE}",
		Short: "Create a ConfigMap that doesn't exist yet",
		Example: `  cmctl create flags --from-literal=mode=blue --from-literal=rollout=10
  cmctl create web --from-file=nginx.conf --from-file=motd=./welcome.txt
  cmctl create app --from-env-file=app.env
  cmctl create -f cm.yaml
  cmctl create flags --from-literal=mode=blue --dry-run=client -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` or folder with manifests, - for stdin; may be repeated")
	o.from.add(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "print the object: yaml, json or name")
	cmd.Flags().StringVar(&o.dryRun, "dry-run", "none", "client: print what would be created, and create nothing")
	return cmd
}

func (o *createOptions) validate() error {
	switch {
	case o.dryRun != "none" && o.dryRun != "client":
		return usagef("--dry-run takes none or client, not %q", o.dryRun)
	case len(o.files) > 0 && (len(o.names) > 0 || o.from.given()):
		return usagef("-f takes whole manifests; a NAME and --from-... don't go with it")
	case len(o.files) == 0 && len(o.names) != 1:
		return usagef("create takes one NAME, or -f FILE")
	}
	return checkOutput(o.output, "yaml", "json", "name")
}

func (o *createOptions) run(ctx context.Context) error {
	conn, err := o.connect("create")
	if err != nil {
		return err
	}
	docs, errs := o.documents(conn)
	for i, doc := range docs {
		if err := untried(ctx, len(docs)-i); err != nil {
			errs = append(errs, err)
			break
		}
		if err := o.create(ctx, conn, doc); err != nil {
			errs = append(errs, err)
		}
	}
	return oneOrMany(errs)
}

// documents are the objects to create, with their namespaces.
func (o *createOptions) documents(conn *connection) ([]types.Document, []error) {
	if len(o.files) == 0 {
		doc := types.NewDocument(conn.namespace, o.names[0])
		if err := o.from.fill(doc, o.note); err != nil {
			return nil, []error{err}
		}
		return []types.Document{doc}, nil
	}
	manifests, errs := manifest.Read(o.files, o.In)
	manifests, misplaced := conn.placeAll(manifests)
	errs = append(errs, misplaced...)
	var docs []types.Document
	for _, m := range manifests {
		switch {
		case len(m.Problems(false)) > 0:
			for _, p := range m.Problems(false) {
				errs = append(errs, fmt.Errorf("%s: %s", m.Where(), p.Message))
			}
		case m.ResourceVersion() != "":
			errs = append(errs, fmt.Errorf("%s: metadata.resourceVersion is set, and only the server gives versions; remove it, or use 'cmctl apply'", m.Where()))
		default:
			docs = append(docs, m.Document)
		}
	}
	return docs, errs
}

func (o *createOptions) create(ctx context.Context, conn *connection, doc types.Document) error {
	result := doc
	if o.dryRun == "none" {
		object := conn.ConfigMaps(doc.Namespace()).Object(doc.Name())
		same := func(found types.Document) bool { return contains(found, doc) }
		res, err := retry.Create(ctx, object, doc, same, o.retryOptions(o.progress(object)))
		if err != nil && !o.landedAndGone(err) {
			return conn.explain(doc.Namespace(), doc.Name(), err)
		}
		if err == nil {
			result = res.Object
		}
	}
	if o.output != "" {
		return printWritten(o.Out, o.output, false, result)
	}
	suffix := ""
	if o.dryRun != "none" {
		suffix = " (dry run)"
	}
	return o.say("configmap/%s created%s", doc.Name(), suffix)
}

// contains tells whether found has everything that was asked for.
func contains(found, asked types.Document) bool {
	have := found.Fields()
	for f, v := range asked.Fields() {
		if !types.SameValue(have[f], v) {
			return false
		}
	}
	return true
}

// placeAll gives manifests their namespaces and refuses those that can't have
// one, and objects that are given twice: the second would undo the first.
func (c *connection) placeAll(manifests []manifest.Manifest) (placed []manifest.Manifest, errs []error) {
	first := map[string]manifest.Manifest{}
	twice := map[string]bool{}
	for _, m := range manifests {
		if err := c.place(m); err != nil {
			errs = append(errs, err)
			continue
		}
		key := m.Namespace() + "/" + m.Name()
		if before, ok := first[key]; ok {
			twice[key] = true
			errs = append(errs, fmt.Errorf("%s: %q is given twice, here and at %s; nothing was written of it", m.Where(), m.Name(), before.Where()))
			continue
		}
		first[key] = m
		placed = append(placed, m)
	}
	placed = slices.DeleteFunc(placed, func(m manifest.Manifest) bool { return twice[m.Namespace()+"/"+m.Name()] })
	return placed, errs
}

// place gives a manifest the namespace to write it to: its own, else the one
// that the command works in. One that contradicts -n is refused.
func (c *connection) place(m manifest.Manifest) error {
	own := m.Namespace()
	if own == "" {
		m.SetMeta("namespace", c.namespace)
		return nil
	}
	if c.explicit && own != c.namespace {
		return fmt.Errorf("%s: %q is in namespace %q, but -n says %q; nothing was written of it", m.Where(), m.Name(), own, c.namespace)
	}
	return nil
}

var _ retry.Creator[types.Document] = (*client.Object)(nil)
