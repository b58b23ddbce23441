package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which the program is one of kubectl's plugins, and the completion
// of that plugin.
const (
	pluginName           = "kubectl-cm"
	pluginCompletionName = "kubectl_complete-cm"
)

// calledAs are the arguments, and whether kubectl is the one who calls. kubectl
// asks a program of its own for completions.
func calledAs(argv []string) (args []string, asPlugin bool) {
	if len(argv) == 0 {
		return nil, false
	}
	switch strings.TrimSuffix(filepath.Base(argv[0]), ".exe") {
	case pluginName:
		return argv[1:], true
	case pluginCompletionName:
		return append([]string{"__complete"}, argv[1:]...), true
	}
	return argv[1:], false
}

// plugin tells whether the program follows kubectl's rules: the server and the
// namespace are those of the kubeconfig's current context, and neither CMCTL_
// variables nor cmctl's own contexts have a say.
func (f *factory) plugin() bool { return f.asPlugin }

func (f *factory) programName() string {
	if f.plugin() {
		return pluginName
	}
	return "cmctl"
}

// displayName is what usage texts call the program.
func (f *factory) displayName() map[string]string {
	if f.plugin() {
		return map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cm"}
	}
	return nil
}
