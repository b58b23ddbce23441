package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
			var err error
			if o.name, err = oneName("patch", args); err != nil {
				return err
			}
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
	addHelmForce(cmd.Flags(), &o.helm)
	o.add(cmd.Flags())
	return cmd
}

func (o *patchOptions) run(ctx context.Context) error {
	p, err := o.read(ctx)
	if err != nil {
		return err
	}
	if err := o.guard.clash("the patch", p.merge); err != nil {
		return err
	}
	o.guard.resourceVersion = cmp.Or(o.guard.resourceVersion, p.merge.ResourceVersion())
	o.guard.uid = cmp.Or(o.guard.uid, p.merge.UID())
	w, err := o.writer("patch", o.writeFlags)
	if err != nil {
		return err
	}
	maps := w.conn.ConfigMaps(w.conn.namespace)
	changed := true
	c := change{
		name:   o.name,
		target: &patchTarget{liveObject: maps.Object(o.name), maps: maps, name: o.name, patch: p},
		edit: func(ctx context.Context, fresh types.Document) (types.Document, error) {
			if p.kind != apitypes.JSONPatchType && o.dryRun != dryRunClient && !helmRecord(fresh) {
				return fresh, nil // the server makes the change
			}
			if err := w.heed(ctx, p, fresh); err != nil {
				return nil, err
			}
			next, err := p.apply(fresh)
			switch {
			case err == nil && fits(next) != nil:
				return nil, fmt.Errorf("the patch can't be made: %w", fits(next))
			case errors.Is(err, jsonpatch.ErrTestFailed):
				return nil, w.testFailed(o.name, err)
			case o.dryRun == dryRunClient && err != nil:
				return nil, fmt.Errorf("the patch can't be made: %w", err)
			case o.dryRun == dryRunClient:
				return next, nil
			case err == nil && !o.helm:
				return fresh, leavesHelms(fresh, types.Diff(fresh, next))
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
	}
	return w.ending(ctx, "patch", func() (outcome, error) {
		done, err := w.apply(ctx, c)
		if err == nil && !changed && o.exitCode {
			err = fmt.Errorf("the patch changes nothing of %s", maps.Object(o.name).Object())
		}
		return done, err
	})
}

// testFailed is a JSON patch whose condition does not hold.
func (w *writer) testFailed(name string, err error) error {
	e := w.dispute(types.NewDocument(w.conn.namespace, name)).err
	e.what = fmt.Sprintf("a test of the patch does not hold; nothing was written (%v)", err)
	return e
}

// heed refuses a copy that is not the one that a JSON patch sets the version or
// the uid of: whoever sets them means a condition, in any type of patch.
func (w *writer) heed(ctx context.Context, p *patch, fresh types.Document) error {
	set, err := p.conditions(fresh)
	if err != nil || len(set) == 0 {
		return err
	}
	if err := w.guard.clash("the patch", set); err != nil {
		return err
	}
	object := w.conn.ConfigMaps(w.conn.namespace).Object(fresh.Name())
	o := w.retryOptions(nil)
	o.Want = object.Version(set)
	_, err = retry.Read(ctx, object, o)
	if apierrors.IsConflict(err) {
		return w.askToDecide(fresh.Name(), err)
	}
	return err
}

// patch is a patch as it was given.
type patch struct {
	kind  apitypes.PatchType
	merge types.Document    // what is to be merged, or
	steps []json.RawMessage // the operations of a JSON patch
}

// read takes the patch from the flags.
func (o *patchOptions) read(ctx context.Context) (*patch, error) {
	text, source := []byte(o.text), "-p"
	var err error
	if o.file != "" {
		source = o.file
		if text, err = o.readFileOrStdin(ctx, o.file); err != nil {
			return nil, err
		}
	}
	p, err := parsePatch(patchKinds[o.kind], text)
	switch {
	case errors.As(err, new(*unfitError)):
		return nil, fmt.Errorf("%s: %w", source, err)
	case err != nil:
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
		if err := json.Unmarshal(asJSON, &p.steps); err != nil || p.steps == nil {
			return nil, errors.New("a JSON patch is a list of operations")
		}
		return p, checkSteps(p.steps)
	}
	if p.merge, err = types.ParseDocument(asJSON); err != nil {
		return nil, errors.New("a patch is a map that looks like a part of the object")
	}
	if meta, ok := p.merge["metadata"].(map[string]any); p.merge["metadata"] != nil && !ok || meta["resourceVersion"] != nil && p.merge.ResourceVersion() == "" {
		return nil, errors.New("its metadata must be a map, and metadata.resourceVersion a string")
	}
	return p, fits(partOf(p.merge, kind == apitypes.StrategicMergePatchType))
}

// conditions is a document with the version and the uid that a JSON patch gives
// to a copy, by whatever operation, where they are not the copy's own. It is
// empty if there are none, or if the patch can't be made.
func (p *patch) conditions(fresh types.Document) (types.Document, error) {
	set := types.Document{}
	body, err := json.Marshal(p.steps)
	if err != nil || p.kind != apitypes.JSONPatchType {
		return set, err
	}
	after, err := p.make(fresh, body)
	if err != nil {
		return set, nil // whoever makes the patch tells why it can't be
	}
	var next struct {
		Metadata map[string]any `json:"metadata"`
	}
	if json.Unmarshal(after, &next) != nil {
		return nil, usagef("the patch can't be made: it leaves something else than a map of fields with a map of metadata")
	}
	for field, now := range map[string]string{"resourceVersion": fresh.ResourceVersion(), "uid": fresh.UID()} {
		switch v := next.Metadata[field]; v.(type) {
		case nil:
		case string:
			if v != "" && v != now {
				set.SetMeta(field, v)
			}
		default:
			return nil, usagef("the patch sets metadata.%s to something that is no string, so that it can't be a condition; take the value from 'cmctl get NAME -o yaml'", field)
		}
	}
	return set, nil
}

// on is the patch with the version that it is to be made on. A JSON patch sets
// it last, for no test of its own tells a Conflict from a test that fails.
func (p *patch) on(version string) ([]byte, error) {
	if p.kind != apitypes.JSONPatchType {
		body := p.merge.Clone()
		body.SetMeta("resourceVersion", version)
		return body.JSON()
	}
	last, err := json.Marshal(map[string]string{"op": "add", "path": "/metadata/resourceVersion", "value": version})
	if err != nil {
		return nil, err
	}
	return json.Marshal(append(p.steps[:len(p.steps):len(p.steps)], last))
}

// apply makes the patch here, on the version of the copy.
func (p *patch) apply(fresh types.Document) (types.Document, error) {
	body, err := p.on(fresh.ResourceVersion())
	if err != nil {
		return nil, err
	}
	after, err := p.make(fresh, body)
	if err != nil {
		return nil, err
	}
	return types.ParseDocument(after)
}

// make is what a body that is a patch of this type makes of a copy.
func (p *patch) make(fresh types.Document, body []byte) (after []byte, err error) {
	defer func() {
		// The libraries panic on some patches that they should refuse.
		if cause := recover(); cause != nil {
			after, err = nil, fmt.Errorf("%v", cause)
		}
	}()
	before, err := fresh.JSON()
	if err != nil {
		return nil, err
	}
	switch p.kind {
	case apitypes.JSONPatchType:
		steps, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, err
		}
		return steps.Apply(before)
	case apitypes.MergePatchType:
		return jsonpatch.MergePatch(before, body)
	}
	return strategicpatch.StrategicMergePatch(before, body, types.ConfigMap{})
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
	if t.patch.kind == apitypes.JSONPatchType && apierrors.IsInvalid(err) {
		return got, t.judge(ctx, d, err)
	}
	return got, patchRefusal(err)
}

// judge finds out what the refusal of a JSON patch is about. The server makes the
// operations before it looks at the version, and refuses one that fails without
// a word of which. Where it made them on another version than d, that is a
// Conflict: what they do on a fresh copy is seen there.
func (t *patchTarget) judge(ctx context.Context, d types.Document, refusal error) error {
	if _, err := t.patch.apply(d); err != nil {
		return &refusedPatchError{err.Error(), refusal}
	}
	now, err := t.Get(ctx)
	if err != nil || t.Version(now) == t.Version(d) {
		return patchRefusal(refusal)
	}
	return apierrors.NewConflict(types.ConfigMaps.GroupResource(), t.name,
		fmt.Errorf("it was at version %s when the patch was made on it", now.ResourceVersion()))
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
