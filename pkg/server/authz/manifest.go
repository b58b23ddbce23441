package authz

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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/server/reload"
	"example.com/cmctl/pkg/types"
)

// manifests are the objects that the rules are made of, by what they are called.
type manifests struct {
	roles               map[string]*rbacv1.Role // by namespace/name, as the bindings of roles
	clusterRoles        map[string]*rbacv1.ClusterRole
	roleBindings        map[string]*rbacv1.RoleBinding
	clusterRoleBindings map[string]*rbacv1.ClusterRoleBinding

	origins map[string]string // where each was read, by kind and name
	errs    []error           // each names its file
}

func newManifests() *manifests {
	return &manifests{
		roles:               map[string]*rbacv1.Role{},
		clusterRoles:        map[string]*rbacv1.ClusterRole{},
		roleBindings:        map[string]*rbacv1.RoleBinding{},
		clusterRoleBindings: map[string]*rbacv1.ClusterRoleBinding{},
		origins:             map[string]string{},
	}
}

// endings are those of files that are read.
var endings = []string{".yaml", ".yml", ".json"}

// maxFileBytes is how large a file may be.
const maxFileBytes = 8 << 20

// readFolder reads every manifest of a folder, and warns of what it passes over.
// Hidden files are passed over silently: editors and mounted volumes have such.
func (m *manifests) readFolder(dir string) (warnings []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		m.errs = append(m.errs, err)
		return nil
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path) // follows links
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case err != nil:
			m.errs = append(m.errs, err)
		case info.IsDir():
			warnings = append(warnings, path+" is a folder: manifests are read from the folder itself only")
		case !slices.Contains(endings, filepath.Ext(entry.Name())):
			warnings = append(warnings, fmt.Sprintf("%s is not read: the names of manifests end in %s", path, strings.Join(endings, ", ")))
		case info.Size() > maxFileBytes:
			m.errs = append(m.errs, fmt.Errorf("%s is no file of at most %d MiB", path, maxFileBytes>>20))
		default:
			if info.Mode().Perm()&0o002 != 0 {
				warnings = append(warnings, path+" can be written by everybody on this machine, who can so give themselves every right; 'chmod o-w' it")
			}
			m.readFile(path)
		}
	}
	return warnings
}

func (m *manifests) readFile(path string) {
	text, err := reload.ReadFile(path)
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	documents, err := split(text, filepath.Ext(path) == ".json")
	for i, d := range documents {
		m.add(fmt.Sprintf("%s: document %d", path, i+1), d)
	}
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("%s: document %d: %w", path, len(documents)+1, err))
	}
}

// split parts a file into the JSON of its documents, as far as it can be read.
// Empty documents of YAML are null.
func split(text []byte, isJSON bool) (documents []json.RawMessage, err error) {
	if isJSON {
		for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
			var d json.RawMessage
			if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
				return documents, nil
			} else if err != nil {
				return documents, err
			}
			documents = append(documents, d)
		}
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return documents, err
		}
		d, err := types.YAMLToJSON(chunk) // which refuses repeated keys
		if err != nil {
			return documents, fmt.Errorf("it is no YAML: %w", err)
		}
		documents = append(documents, d)
	}
}

// list is Kubernetes' List of anything.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []json.RawMessage `json:"items"`
}

// add takes one document, which is at origin.
func (m *manifests) add(origin string, document json.RawMessage) {
	if string(bytes.TrimSpace(document)) == "null" {
		return
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &kind); err != nil {
		m.refuse(origin, "", err)
		return
	}
	if kind.Kind == "List" && kind.APIVersion == "v1" {
		var l list
		if err := strictly(document, &l); err != nil {
			m.refuse(origin, "List", err)
		}
		for i, item := range l.Items {
			m.add(fmt.Sprintf("%s, items[%d]", origin, i), item)
		}
		return
	}
	if kind.APIVersion != rbacv1.SchemeGroupVersion.String() {
		m.refuse(origin, kind.Kind, fmt.Errorf("apiVersion %q is not %s", kind.APIVersion, rbacv1.SchemeGroupVersion))
		return
	}
	switch kind.Kind {
	case "Role":
		take(m, m.roles, origin, document, &rbacv1.Role{}, validateRole)
	case "ClusterRole":
		take(m, m.clusterRoles, origin, document, &rbacv1.ClusterRole{}, validateClusterRole)
	case "RoleBinding":
		take(m, m.roleBindings, origin, document, &rbacv1.RoleBinding{}, validateRoleBinding)
	case "ClusterRoleBinding":
		take(m, m.clusterRoleBindings, origin, document, &rbacv1.ClusterRoleBinding{}, validateClusterRoleBinding)
	default:
		m.refuse(origin, kind.Kind, errors.New("the kinds that are read are Role, ClusterRole, RoleBinding and ClusterRoleBinding"))
	}
}

// refuse notes what is wrong at origin with what calls itself what.
func (m *manifests) refuse(origin, what string, err error) {
	if what != "" {
		origin += " (" + what + ")"
	}
	m.errs = append(m.errs, fmt.Errorf("%s: %w", origin, err))
}

// object is one of the four kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// take decodes, checks and keeps an object. One name is one object: of two it would
// be chance which counts.
func take[T object](m *manifests, into map[string]T, origin string, document []byte, o T, validate func(T) field.ErrorList) {
	err := strictly(document, o)
	kind, name := o.GetObjectKind().GroupVersionKind().Kind, qualified(o.GetNamespace(), o.GetName())
	what := strings.TrimSpace(kind + " " + name)
	if err != nil {
		m.refuse(origin, what, err)
		return
	}
	if errs := validate(o); len(errs) > 0 {
		m.refuse(origin, what, errs.ToAggregate())
		return
	}
	if other, ok := m.origins[what]; ok {
		m.refuse(origin, what, fmt.Errorf("it is also in %s: keep one of them", other))
		return
	}
	m.origins[what] = origin
	if err := replaces(o, kind); err != nil {
		m.refuse(origin, what, err)
		return
	}
	into[name] = o
}

// strictly decodes what is wholly understood: fields that there are not, or that
// are given twice, are refused.
func strictly(document []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(document, into)
	return errors.Join(append([]error{err}, strict...)...)
}

// qualified is how messages name an object.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
