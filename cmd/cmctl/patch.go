package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

type patchOptions struct {
	*factory
	writeFlags
	name     string
	kind     string
	text     string
	file     string
	exitCode bool
}

// patchKinds are the types of patches by the names that kubectl has for them.
var patchKinds = map[string]apitypes.PatchType{
	"json":      apitypes.JSONPatchType,
	"merge":     apitypes.MergePatchType,
	"strategic": apitypes.StrategicMergePatchType,
}

func newPatch(f *factory) *cobra.Command {
	o := &patchOptions{factory: f}
	cmd := &cobra.Command{
		Use:   "patch NAME {-p PATCH | --patch-file FILE}",
		Short: "Change a ConfigMap by a patch, made on the version that was read",
		Long: `Change a ConfigMap by a patch in JSON or YAML.

The object is read first, and the patch goes out with the version that was read, so
that the server makes it on that one. If others write in between, it is made on what
is there then. A field that no ConfigMap has is refused, and a patch that changes
nothing says so.`,
		Example: `  cmctl patch flags -p '{"data":{"mode":"green"}}'
  cmctl patch flags --type=json -p '[{"op":"test","path":"/data/mode","value":"blue"},
    {"op":"replace","path":"/data/mode","value":"green"}]'
  cmctl patch flags --type=merge --patch-file=change.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := parseNames(args)
			if err != nil {
				return err
			}
			if len(names) != 1 {
				return usagef("patch takes one NAME")
			}
			o.name = names[0]
			if _, ok := patchKinds[o.kind]; !ok {
				return usagef("--type takes strategic, merge or json, not %q; for an apply there is 'cmctl apply --server-side'", o.kind)
			}
			if cmd.Flags().Changed("patch") == cmd.Flags().Changed("patch-file") {
				return usagef("give the patch with either -p or --patch-file")
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.text, "patch", "p", "", "the `PATCH`, as JSON or YAML")
	cmd.Flags().StringVar(&o.file, "patch-file", "", "`FILE` with the patch, - for stdin")
	cmd.Flags().StringVar(&o.kind, "type", "strategic", "type of the patch: strategic, merge or json")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 1 if the patch changes nothing")
	o.add(cmd.Flags())
	return cmd
}

func (o *patchOptions) run(ctx context.Context) error {
	p, err := o.read()
	if err != nil {
		return err
	}
	if v := p.version(); v != "" {
		if o.guard.resourceVersion != "" && o.guard.resourceVersion != v {
			return usagef("the patch sets metadata.resourceVersion to %q, but the flag says %q; give one of them", v, o.guard.resourceVersion)
		}
		o.guard.resourceVersion = v
	}
	w, err := o.writer("patch", o.writeFlags)
	if err != nil {
		return err
	}
	maps := w.conn.ConfigMaps(w.conn.namespace)
	changed := true
	_, err = w.apply(ctx, change{
		name:   o.name,
		target: &patchTarget{liveObject: maps.Object(o.name), maps: maps, name: o.name, patch: p},
		edit: func(_ context.Context, fresh types.Document) (types.Document, error) {
			if p.kind != apitypes.JSONPatchType && o.dryRun != dryRunClient {
				return fresh, nil // the server makes the change
			}
			next, err := p.apply(fresh)
			switch {
			case errors.Is(err, jsonpatch.ErrTestFailed):
				return nil, w.testFailed(o.name, err)
			case o.dryRun == dryRunClient:
				return next, err
			}
			return fresh, nil // the server has its own words for what is wrong
		},
		word: func(was, now types.Document) string {
			if changed = now == nil || len(types.Diff(was, now)) > 0; !changed {
				o.note("no change: the object has all of it already")
				return "patched (no change)"
			}
			return "patched"
		},
		// What a JSON patch does may depend on what it meets.
		computed: p.kind == apitypes.JSONPatchType,
	})
	if err == nil && !changed && o.exitCode {
		err = fmt.Errorf("the patch changes nothing of %s", maps.Object(o.name).Object())
	}
	return w.finish(asErrors(err)...)
}

// testFailed is a JSON patch whose condition does not hold.
func (w *writer) testFailed(name string, err error) error {
	e := w.dispute(types.NewDocument(w.conn.namespace, name)).err
	e.what = fmt.Sprintf("a test of the patch does not hold; nothing was written (%v)", err)
	return e
}

// patch is a patch as it was given.
type patch struct {
	kind  apitypes.PatchType
	merge types.Document    // what is to be merged, or
	steps []json.RawMessage // the operations of a JSON patch
}

// read takes the patch from the flags.
func (o *patchOptions) read() (*patch, error) {
	text, source := []byte(o.text), "-p"
	var err error
	switch {
	case o.file == "-":
		source = "standard input"
		text, err = io.ReadAll(o.In)
	case o.file != "":
		source = o.file
		text, err = os.ReadFile(o.file)
	}
	if err != nil {
		return nil, manifest.FileError(source, err)
	}
	p, err := parsePatch(patchKinds[o.kind], text)
	if err != nil {
		return nil, usagef("%s: %v", source, err)
	}
	return p, nil
}

func parsePatch(kind apitypes.PatchType, text []byte) (*patch, error) {
	asJSON, err := manifest.ToJSON(text)
	if err != nil {
		return nil, err
	}
	p := &patch{kind: kind}
	if kind == apitypes.JSONPatchType {
		if err := json.Unmarshal(asJSON, &p.steps); err != nil {
			return nil, errors.New("a JSON patch is a list of operations")
		}
		return p, nil
	}
	if p.merge, err = types.ParseDocument(asJSON); err != nil {
		return nil, errors.New("a patch is a map that looks like a part of the object")
	}
	if meta, ok := p.merge["metadata"].(map[string]any); p.merge["metadata"] != nil && !ok || meta["resourceVersion"] != nil && p.merge.ResourceVersion() == "" {
		return nil, errors.New("its metadata must be a map, and metadata.resourceVersion a string")
	}
	return p, nil
}

// version is the version that the patch itself wants to be made on, if any.
func (p *patch) version() string {
	version := p.merge.ResourceVersion()
	for _, raw := range p.steps {
		var step struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value any    `json:"value"`
		}
		if err := json.Unmarshal(raw, &step); err == nil && step.Path == versionPath && (step.Op == "add" || step.Op == "replace") {
			version, _ = step.Value.(string)
		}
	}
	return version
}

const versionPath = "/metadata/resourceVersion"

// on is the patch with the version that it is to be made on. A JSON patch sets
// it last, for no test of its own tells a Conflict from a test that fails.
func (p *patch) on(version string) ([]byte, error) {
	if p.kind != apitypes.JSONPatchType {
		body := p.merge.Clone()
		body.SetMeta("resourceVersion", version)
		return body.JSON()
	}
	last, err := json.Marshal(map[string]string{"op": "add", "path": versionPath, "value": version})
	if err != nil {
		return nil, err
	}
	return json.Marshal(append(p.steps[:len(p.steps):len(p.steps)], last))
}

// apply makes the patch here.
func (p *patch) apply(fresh types.Document) (next types.Document, err error) {
	defer func() {
		// The libraries panic on some patches that they should refuse.
		if cause := recover(); cause != nil {
			next, err = nil, fmt.Errorf("the patch can't be made: %v", cause)
		}
	}()
	before, err := fresh.JSON()
	if err != nil {
		return nil, err
	}
	body, err := p.on(fresh.ResourceVersion())
	if err != nil {
		return nil, err
	}
	var after []byte
	switch p.kind {
	case apitypes.JSONPatchType:
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = steps.Apply(before)
		}
	case apitypes.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	default:
		after, err = strategicpatch.StrategicMergePatch(before, body, types.ConfigMap{})
	}
	if err != nil {
		return nil, fmt.Errorf("the patch can't be made: %w", err)
	}
	return types.ParseDocument(after)
}

// patchTarget is an object whose writes are patches made on the version of the
// copy that is to be written.
type patchTarget struct {
	*liveObject
	maps  *client.ConfigMaps
	name  string
	patch *patch
}

// liveObject is a name under which the field doesn't hide the method Object.
type liveObject = client.Object

var _ retry.Target[types.Document] = (*patchTarget)(nil)

func (t *patchTarget) Put(ctx context.Context, d types.Document, id retry.WriteID) (types.Document, error) {
	body, err := t.patch.on(d.ResourceVersion())
	if err != nil {
		return nil, err
	}
	got, err := t.maps.Patch(ctx, t.name, t.patch.kind, body, client.PatchOptions{}, id)
	return got, patchRefusal(err)
}

// refusedPatchError is the server's refusal of a patch without the object that
// it quotes, which may be long, or secret.
type refusedPatchError struct {
	reason string
	err    error
}

func (e *refusedPatchError) Error() string { return "the patch was refused: " + e.reason }
func (e *refusedPatchError) Unwrap() error { return e.err }

// patchRefusal takes the reason out of a refusal that shows the whole object.
func patchRefusal(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	for _, c := range status.Status().Details.Causes {
		value, ok := strings.CutPrefix(c.Message, "Invalid value: ")
		quoted, bad := strconv.QuotedPrefix(value)
		if c.Field == "patch" && ok && bad == nil {
			return &refusedPatchError{strings.TrimPrefix(value[len(quoted):], ": "), err}
		}
	}
	return err
}
