package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/intake"
)

// files are those that one operand names.
func (o Options) files(path string) ([]string, []error) {
	if path == "-" {
		return []string{path}, nil
	}
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return nil, []error{fmt.Errorf("%s: manifests aren't fetched from the network; pipe what you trust: curl -fsSL URL | cmctl ... -f -", path)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, `*?[`):
		return o.matching(path)
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, ","):
		return nil, []error{fmt.Errorf("%w; give each file a -f of its own", intake.FileError(path, err))}
	case err != nil:
		return nil, []error{intake.FileError(path, err)}
	case !info.IsDir():
		return []string{path}, nil
	}
	return o.folder(path)
}

// matching are the files and folders that a pattern stands for, as a shell would
// have it: hidden ones only if it says so.
func (o Options) matching(pattern string) (files []string, errs []error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, []error{fmt.Errorf("%s: no such file, and as a pattern it can't be read: %w", pattern, err)}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return hidden(filepath.Clean(pattern), path) })
	if len(paths) == 0 {
		return nil, []error{fmt.Errorf("%s: no file matches", pattern)}
	}
	for _, path := range paths {
		found, faults := o.files(path)
		files, errs = append(files, found...), append(errs, faults...)
	}
	return files, errs
}

// hidden tells whether a part of the path begins with a dot where the pattern's
// doesn't.
func hidden(pattern, path string) bool {
	asked := strings.Split(filepath.ToSlash(pattern), "/")
	for i, part := range strings.Split(filepath.ToSlash(path), "/") {
		if strings.HasPrefix(part, ".") && i < len(asked) && !strings.HasPrefix(asked[i], ".") {
			return true
		}
	}
	return false
}

// folder are the manifests of a folder, by name.
func (o Options) folder(dir string) ([]string, []error) {
	w := walk{Options: o}
	w.enter(dir)
	if len(w.found)+len(w.faults) == 0 {
		hint := ""
		if !o.Recursive && w.folders {
			hint = "; -R reads the folders below it too"
		}
		return nil, []error{fmt.Errorf("the folder %s holds no manifest: no file in it ends in .yaml, .yml or .json%s", dir, hint)}
	}
	return w.found, w.faults
}

// walk goes through a folder, links to files and folders included.
type walk struct {
	Options
	above   []fs.FileInfo // the folders that lead to this one
	found   []string
	faults  []error
	folders bool // there are folders below
}

func (w *walk) fault(path string, err error) {
	w.faults = append(w.faults, intake.FileError(path, err))
}

func (w *walk) skip(path, why string) {
	if w.SkippedFile != nil {
		w.SkippedFile(fmt.Sprintf("%s is not read: %s", path, why))
	}
}

// enter reads one folder, unless the way to it led through it already.
func (w *walk) enter(dir string) {
	info, err := os.Stat(dir)
	if err != nil {
		w.fault(dir, err)
		return
	}
	for _, above := range w.above {
		if os.SameFile(above, info) {
			w.fault(dir, errors.New("this link leads back to a folder above it"))
			return
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.fault(dir, err)
		return
	}
	w.above = append(w.above, info)
	for _, e := range entries {
		w.visit(filepath.Join(dir, e.Name()), e)
	}
	w.above = w.above[:len(w.above)-1]
}

func (w *walk) visit(path string, e fs.DirEntry) {
	kind := e.Type()
	if kind&fs.ModeSymlink != 0 {
		if info, err := os.Stat(path); err == nil {
			kind = info.Mode().Type()
		}
	}
	isFolder := kind.IsDir()
	ext := strings.ToLower(filepath.Ext(path))
	switch {
	case strings.HasPrefix(e.Name(), "."):
		w.skip(path, "it is hidden")
	case isFolder && w.Recursive:
		w.enter(path)
	case isFolder:
		w.folders = true
		w.skip(path, "it is a folder; -R reads folders too")
	case isKustomization(e.Name()):
		w.fault(path, errors.New("this folder is a kustomization, which isn't built here; "+Kustomize))
	case ext != ".yaml" && ext != ".yml" && ext != ".json":
		w.skip(path, "its name ends in none of .yaml, .yml and .json")
	case !kind.IsRegular() && kind&fs.ModeSymlink == 0:
		w.skip(path, "it is not a file") // to read a named pipe would wait
	default:
		w.found = append(w.found, path)
	}
}

// Kustomize is what to do with a kustomization.
const Kustomize = "build it first: kubectl kustomize FOLDER | cmctl ... -f -"

func isKustomization(name string) bool {
	return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization"
}
