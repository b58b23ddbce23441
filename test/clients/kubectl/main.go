// Command kubectl is the command line of Kubernetes as its own module k8s.io/kubectl
// has it, put together as the released program is.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // the released program has every way to authenticate
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // else -v counts only once the flags are read
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
