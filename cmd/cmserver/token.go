package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

type tokenOptions struct {
	user   string
	uid    string
	groups []string
	file   string // empty: the line is printed
	out    streams
}

func tokenCommand(out streams) *cobra.Command {
	o := tokenOptions{out: out}
	cmd := &cobra.Command{
		Use:   "token USER",
		Short: "Make a bearer token for a user",
		Long: "token makes a random token and the line of --token-auth-file that lets its holder in. The line has\n" +
			"the SHA-256 of the token only: who reads the file can't use it.\n\n" +
			"With --add-to the line goes to the end of that file, which is made if it is not there, and stdout\n" +
			"gets the token alone. Otherwise stdout gets the token and, below it, the line. The token is shown\n" +
			"this once. A running server takes a changed file within seconds; to revoke a token, remove its line.",
		Example: "  cmserver token jane --group devs --add-to /etc/cmserver/tokens.csv\n" +
			"  cmserver token admin --group system:masters --add-to tokens.csv >admin.token",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "" {
				return nil
			}
			return usageError{fmt.Errorf("%s takes one argument, the name of the user; see '%s --help'", cmd.CommandPath(), cmd.CommandPath())}
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.user = args[0]
			return o.run()
		},
	}
	cmd.Flags().StringVar(&o.uid, "uid", "", "`UID` that tells this user from an earlier one of the same name")
	cmd.Flags().StringArrayVar(&o.groups, "group", nil, "`GROUP` of the user; may be repeated")
	cmd.Flags().StringVar(&o.file, "add-to", "", "`FILE` of tokens that gets the line")
	return cmd
}

func (o tokenOptions) run() error {
	token := authn.NewToken()
	line, err := authn.TokenLine(token, &user.DefaultInfo{Name: o.user, UID: o.uid, Groups: o.groups})
	if err != nil {
		return usageError{err}
	}
	if o.file == "" {
		_, err := fmt.Fprintf(o.out.out, "%s\n%s", token, line)
		return err
	}
	if err := addLine(o.file, line); err != nil {
		return fmt.Errorf("no token was made: %w", err)
	}
	if _, err := fmt.Fprintln(o.out.out, token); err != nil {
		return fmt.Errorf("the token was added to %s and can't be printed: remove the last line there: %w", o.file, err)
	}
	_, err = fmt.Fprintf(o.out.err, "added a token of user %q to %s\n", o.user, o.file)
	return err
}

// addLine adds a line to a file of tokens that is sound.
func addLine(path, line string) (err error) {
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, _, err := authn.ParseTokens(bytes.NewReader(before)); err != nil {
		return fmt.Errorf("%s is no file of tokens: %w", path, err)
	}
	if len(before) > 0 && before[len(before)-1] != '\n' {
		line = "\n" + line
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteString(line); err != nil {
		return err
	}
	return file.Sync()
}
