package audit

import (
	"errors"
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	kubeaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/server/reload"
	"example.com/cmctl/pkg/types"
)

// Policy says what is logged, and how much of it. It is immutable.
type Policy struct{ evaluator kubeaudit.PolicyRuleEvaluator }

// rule is what the policy says of one request.
type rule struct {
	level             auditv1.Level
	omitStages        []auditv1.Stage
	omitManagedFields bool
}

// DefaultPolicy logs every write by its metadata, and nothing else. strict is that
// of Load.
func DefaultPolicy(strict bool) *Policy {
	p := auditv1.Policy{Rules: []auditv1.PolicyRule{
		// Questions that are asked by creating them, and store nothing.
		{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{{Group: "authentication.k8s.io"}, {Group: "authorization.k8s.io"}}},
		{Level: auditv1.LevelMetadata, Verbs: []string{"create", "update", "patch", "delete", "deletecollection"}},
	}}
	if !strict {
		p.OmitStages = []auditv1.Stage{auditv1.StageRequestReceived}
	}
	made, err := newPolicy(&p, strict)
	if err != nil {
		panic(err) // it is a constant
	}
	return made
}

// maxFileBytes is how large a policy may be.
const maxFileBytes = 1 << 20

// Load reads a policy of audit.k8s.io/v1 in YAML or JSON, all of which must be
// understood. With strict it must not leave out the stage RequestReceived of what it
// logs, for that is what a strict Recorder relies on.
func Load(path string, strict bool) (*Policy, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s is no file of at most %d KiB", path, maxFileBytes>>10)
	}
	text, err := reload.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := Parse(text, strict)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Parse is Load for a text.
func Parse(text []byte, strict bool) (*Policy, error) {
	document, err := types.YAMLToJSON(text) // JSON is YAML as well
	if err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &kind); err != nil {
		return nil, err
	}
	if version := auditv1.SchemeGroupVersion.String(); kind.Kind != "Policy" || kind.APIVersion != version {
		return nil, fmt.Errorf("it is a %q of %q: kind: Policy and apiVersion: %s are wanted", kind.Kind, kind.APIVersion, version)
	}
	var p auditv1.Policy
	unknown, err := kjson.UnmarshalStrict(document, &p)
	if err := errors.Join(append([]error{err}, unknown...)...); err != nil {
		return nil, err
	}
	return newPolicy(&p, strict)
}

func newPolicy(p *auditv1.Policy, strict bool) (*Policy, error) {
	var inside internal.Policy
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(p, &inside, nil); err != nil {
		return nil, err
	}
	if errs := validation.ValidatePolicy(&inside); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if len(inside.Rules) == 0 {
		return nil, errors.New("it has no rules, and so would log nothing: leave out --audit-log-path if that is meant")
	}
	for i, r := range inside.Rules {
		left := slices.Contains(inside.OmitStages, internal.StageRequestReceived) || slices.Contains(r.OmitStages, internal.StageRequestReceived)
		if strict && left && r.Level != internal.LevelNone {
			return nil, fmt.Errorf("rules[%d] leaves out the stage RequestReceived, which --audit-log-mode blocking-strict needs: "+
				"take it out of omitStages, or use the mode blocking", i)
		}
	}
	return &Policy{policy.NewPolicyRuleEvaluator(&inside)}, nil
}

func (p *Policy) ruleFor(a *authorizer.AttributesRecord) rule {
	found := p.evaluator.EvaluatePolicyRule(a)
	r := rule{level: auditv1.Level(found.Level), omitManagedFields: found.OmitManagedFields}
	if r.level == auditv1.LevelNone {
		return r
	}
	for _, stage := range found.OmitStages {
		r.omitStages = append(r.omitStages, auditv1.Stage(stage))
	}
	return r
}
