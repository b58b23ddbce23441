package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
)

type createOptions struct {
	*factory
	names      []string
	input      inputFlags
	from       fromFlags
	output     string
	dryRun     string
	appendHash bool
	immutable  bool
}

func newCreate(f *factory) *cobra.Command {
	o := &createOptions{factory: f, input: inputFlags{unnamed: true}}
	cmd := &cobra.Command{
		Use:   "create {NAME [--from-...] | -f FILE...}",
		Short: "Create ConfigMaps that don't exist yet",
		Long: `Create a ConfigMap from literals, files and env files, or those that manifests
hold. One that exists is never touched: that is an error. So is a manifest with a
resourceVersion, as 'cmctl get -o yaml' prints it: 'cmctl apply' takes that, and 'cmctl
export' writes what create takes.

A manifest may have metadata.generateName in the place of a name: the server makes
one that begins so. If the answer to that is lost, nobody can tell whether there is a
new object; it is not sent again then, and the exit code is 7.`,
		Example: `  cmctl create flags --from-literal=mode=blue --from-literal=rollout=10
  cmctl create web --from-file=nginx.conf --from-file=motd=./welcome.txt
  cmctl create site --from-file=conf.d -R --key-sep=_
  cmctl create app --from-env-file=app.env --env-format=dotenv
  kubectl get cm app -o jsonpath='{.data.motd}' | cmctl create copy --from-file=motd=-
  cmctl create -f cm.yaml
  cmctl create flags --from-literal=mode=blue --dry-run=client -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = o.input.take(args); err != nil {
				return err
			}
			if o.names, err = parseNames(args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.input.add(cmd.Flags())
	o.from.add(cmd.Flags())
	addDryRun(cmd.Flags(), &o.dryRun)
	addOutput(cmd.Flags(), &o.output)
	cmd.Flags().BoolVar(&o.immutable, "immutable", false, "make it one that can't be changed")
	cmd.Flags().BoolVar(&o.appendHash, "append-hash", false, "append a hash of the contents to the name, as kubectl does")
	return cmd
}

func (o *createOptions) validate() error {
	switch {
	case o.input.given() && (o.from.given() || o.immutable || o.appendHash):
		return usagef("-f takes whole manifests; --from-..., --immutable and --append-hash don't go with it")
	case !o.input.given() && len(o.names) != 1:
		return usagef("create takes one NAME, or -f FILE")
	}
	if err := validateDryRun(o.dryRun); err != nil {
		return err
	}
	return checkOutput(o.output, "yaml", "json", "name")
}

func (o *createOptions) run(ctx context.Context) error {
	conn, err := o.connectDry("create", o.dryRun == dryRunServer)
	if err != nil {
		return err
	}
	docs, errs := o.documents(ctx, conn)
	failed := o.inOrder(ctx, "create", results{form: o.output, dryRun: o.dryRun}, len(docs), func(ctx context.Context, f *factory, i int) (outcome, error) {
		one := *o
		one.factory = f
		return one.create(ctx, conn, docs[i])
	})
	return oneOrMany(append(errs, failed...))
}

// documents are the objects to create, with their namespaces.
func (o *createOptions) documents(ctx context.Context, conn *connection) ([]types.Document, []error) {
	if !o.input.given() {
		doc, err := o.document(ctx, conn.namespace)
		if err != nil {
			return nil, []error{err}
		}
		return []types.Document{doc}, nil
	}
	manifests, errs := o.input.read(ctx, o.factory, conn)
	manifests, faults := withoutValues(manifests)
	errs = append(errs, faults...)
	var docs []types.Document
	for _, m := range manifests {
		if m.ResourceVersion() != "" {
			errs = append(errs, m.FaultAt(types.Problem{Path: []string{"metadata", "resourceVersion"},
				Message: "metadata.resourceVersion is set, and only the server gives versions; remove it, write the file with 'cmctl export', or use 'cmctl apply'"}))
			continue
		}
		docs = append(docs, m.Document)
	}
	return docs, errs
}

// document is the object that the flags describe.
func (o *createOptions) document(ctx context.Context, namespace string) (types.Document, error) {
	doc := types.NewDocument(namespace, o.names[0])
	if err := o.from.fill(ctx, doc, o.factory); err != nil {
		return nil, err
	}
	if err := tooLarge(doc); err != nil {
		return nil, fmt.Errorf("%q is not created: %w", doc.Name(), err)
	}
	if o.immutable {
		doc["immutable"] = true
	}
	if !o.appendHash {
		return doc, nil
	}
	hash, err := contentHash(doc)
	if err != nil {
		return nil, err
	}
	doc.SetMeta("name", doc.Name()+"-"+hash)
	return doc, nil
}

func (o *createOptions) create(ctx context.Context, conn *connection, doc types.Document) (outcome, error) {
	result := doc
	if o.dryRun != dryRunClient {
		made, err := o.send(ctx, conn, doc)
		if err != nil {
			err = conn.nameTaken(ctx, doc.Namespace(), doc.Name(), err)
			return outcome{}, conn.explain(doc.Namespace(), nameOf(doc), err)
		}
		if made != nil {
			result = made
		}
	}
	done := outcome{"created", result}
	return done, o.tellResult(o.output, o.dryRun, "configmap/"+nameOf(result), done)
}

// generateName is what the name begins with that the server is to make.
func generateName(doc types.Document) string {
	prefix, _ := doc.Value("metadata", "generateName")
	text, _ := prefix.(string)
	return text
}

// nameOf is the name for messages: run-* where the server is to make one.
func nameOf(doc types.Document) string {
	if doc.Name() == "" {
		return generateName(doc) + "*"
	}
	return doc.Name()
}

// send creates the object and returns it as the server has it; nil without an
// error is one that was created, and deleted by somebody else since.
func (o *createOptions) send(ctx context.Context, conn *connection, doc types.Document) (types.Document, error) {
	maps := conn.ConfigMaps(doc.Namespace())
	var object retry.Creator[types.Document] = maps.Object(doc.Name())
	if doc.Name() == "" {
		object = maps.Unnamed(generateName(doc))
	}
	same := func(found types.Document) bool { return contains(found, doc) }
	res, err := retry.Create(ctx, object, doc, same, o.retryOptions(o.progress(object)))
	switch {
	case o.landedAndGone(err):
		return nil, nil
	case unknownOutcome(err) && doc.Name() == "":
		err = &hintedError{err, fmt.Sprintf("there may be a new object whose name begins with %q: look with 'cmctl get --sort-by=AGE%s' before trying again", generateName(doc), conn.where)}
	case err == nil && o.dryRun == dryRunServer:
		err = o.checkUnstored(ctx, maps.Object(res.Object.Name()), nil, res.Object)
	}
	return res.Object, err
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

// contentHash is the hash that kubectl and kustomize append to names, so that the
// same contents get the same name from each of them.
func contentHash(doc types.Document) (string, error) {
	parts := map[string]any{"kind": doc.Kind(), "name": doc.Name(), "data": map[string]any{}}
	if data, ok := doc["data"]; ok {
		parts["data"] = data
	}
	if immutable, ok := doc["immutable"]; ok {
		parts["immutable"] = immutable
	}
	if binary, ok := doc["binaryData"]; ok {
		parts["binaryData"] = binary
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("hash %q: %w", doc.Name(), err)
	}
	sum := sha256.Sum256(text)
	// Digits and letters that can't make a word.
	safe := strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e", "t")
	return safe.Replace(hex.EncodeToString(sum[:])[:10]), nil
}

var _ retry.Creator[types.Document] = (*client.Object)(nil)
