package quota

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/server/reload"
	"example.com/cmctl/pkg/types"
)

// endings are those of files that are read.
var endings = []string{".yaml", ".yml", ".json"}

// maxFileBytes is how large a file may be.
const maxFileBytes = 8 << 20

// Load reads the ResourceQuota manifests of a folder, empty: none. Whatever is not
// understood makes it fail, and the error names each such place: a bound that was
// meant must not be missing.
func Load(dir string, d Defaults) (*Rules, error) {
	l := loader{rules: &Rules{own: map[string][]Quota{}, every: d.completed(nil)}, origins: map[string]string{}}
	if dir != "" {
		l.folder(dir)
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	for namespace, quotas := range l.rules.own {
		l.rules.own[namespace] = d.completed(quotas)
	}
	return l.rules, nil
}

// loader collects quotas, and all that is wrong.
type loader struct {
	rules   *Rules
	origins map[string]string // where each quota was read, by namespace/name
	errs    []error
}

func (l *loader) refuse(origin string, err error) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", origin, err))
}

// folder reads the files of a folder in the order of their names. Hidden ones are
// passed over: editors and mounted volumes have such.
func (l *loader) folder(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		info, err := os.Stat(name) // follows links
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case err != nil:
			l.errs = append(l.errs, err)
		case !slices.Contains(endings, filepath.Ext(name)):
			l.refuse(name, fmt.Errorf("it is no manifest, whose names end in %s: move it out of the folder", strings.Join(endings, ", ")))
		case info.Size() > maxFileBytes:
			l.refuse(name, fmt.Errorf("it is no file of at most %d MiB", maxFileBytes>>20))
		default:
			l.file(name)
		}
	}
}

func (l *loader) file(name string) {
	text, err := reload.ReadFile(name)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	// A document of JSON is one of YAML.
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		var document []byte
		if err == nil {
			document, err = types.YAMLToJSON(chunk) // which refuses repeated keys
		}
		origin := fmt.Sprintf("%s: document %d", name, n)
		if err != nil {
			l.refuse(origin, err)
			return
		}
		l.document(origin, document)
	}
}

// list is Kubernetes' List of anything.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []json.RawMessage `json:"items"`
}

func (l *loader) document(origin string, document []byte) {
	if string(document) == "null" {
		return
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(document, &kind); err != nil {
		l.refuse(origin, err)
		return
	}
	switch {
	case kind.APIVersion != "v1":
		l.refuse(origin, fmt.Errorf("apiVersion is %q, not v1", kind.APIVersion))
	case kind.Kind == "List" || kind.Kind == "ResourceQuotaList":
		var all list
		if err := strictly(document, &all); err != nil {
			l.refuse(origin, err)
		}
		for i, item := range all.Items {
			l.document(fmt.Sprintf("%s, items[%d]", origin, i), item)
		}
	case kind.Kind == "ResourceQuota":
		l.quota(origin, document)
	default:
		l.refuse(origin, fmt.Errorf("kind is %q: ResourceQuota alone is read here", kind.Kind))
	}
}

// strictly refuses fields that there are not, or that are given twice.
func strictly(document []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(document, into)
	return errors.Join(append([]error{err}, strict...)...)
}

func (l *loader) quota(origin string, document []byte) {
	var manifest corev1.ResourceQuota
	if err := strictly(document, &manifest); err != nil {
		l.refuse(origin, err)
		return
	}
	full := manifest.Namespace + "/" + manifest.Name
	origin += " (" + full + ")"
	if errs := validate(&manifest); len(errs) > 0 {
		l.refuse(origin, errs.ToAggregate())
		return
	}
	if other, ok := l.origins[full]; ok {
		l.refuse(origin, fmt.Errorf("it is also in %s: keep one of them", other))
		return
	}
	l.origins[full] = origin
	q := Quota{Name: manifest.Name, Hard: map[string]int64{}}
	for key, bound := range manifest.Spec.Hard {
		q.Hard[string(key)] = bound.Value()
	}
	l.rules.own[manifest.Namespace] = append(l.rules.own[manifest.Namespace], q)
}

// validate refuses what this server can't hold anybody to. A status is what some
// other server had counted.
func validate(q *corev1.ResourceQuota) field.ErrorList {
	errs := validation.ValidateObjectMeta(&q.ObjectMeta, true, path.ValidatePathSegmentName, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		errs = append(errs, field.Forbidden(spec.Child("scopes"), "ConfigMaps have none"))
	}
	known := []string{ConfigMaps, CountConfigMaps, Bytes}
	for key, bound := range q.Spec.Hard {
		at := spec.Child("hard").Key(string(key))
		if !slices.Contains(known, string(key)) {
			errs = append(errs, field.NotSupported(at, string(key), known))
		}
		if _, exact := bound.AsInt64(); !exact || bound.Sign() < 0 {
			errs = append(errs, field.Invalid(at, bound.String(), "must be a whole number, not below 0"))
		}
	}
	return errs
}
