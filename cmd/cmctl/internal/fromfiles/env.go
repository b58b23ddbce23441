package fromfiles

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/intake"
)

// addEnvFile reads one env file.
func (c *collector) addEnvFile(path string) {
	text, err := c.read(path)
	if err != nil {
		c.fail(err)
		return
	}
	if path == "-" {
		path = "standard input"
	}
	if err := intake.CheckText(path, text); err != nil {
		c.fail(err)
		return
	}
	if !bytes.ContainsRune(text, '\n') && bytes.ContainsRune(bytes.TrimRight(text, "\r"), '\r') {
		c.fail(fmt.Errorf("%s: its lines end in carriage returns alone, and would become one value; end them with LF or CR LF", path))
		return
	}
	before, failed := len(c.origin), len(c.errs)
	e := env{collector: c, path: path, text: string(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))}
	for e.text != "" {
		if !e.entry() {
			return // what follows is probably no new entry
		}
	}
	if len(c.origin) == before && len(c.errs) == failed {
		c.Note("%s holds no KEY=VALUE", path)
	}
}

// env is an env file on its way into the data.
type env struct {
	*collector
	path string
	text string // what is left
	line int    // of what was read last
}

func (e *env) next() string {
	line, rest, _ := strings.Cut(e.text, "\n")
	e.text = rest
	e.line++
	return strings.TrimRight(line, "\r")
}

// entry reads what begins on the next line: KEY=VALUE, a comment, or a bare KEY
// that takes its value from the environment. It is false where the rest can't be
// told apart any more.
func (e *env) entry() bool {
	line := strings.TrimLeft(e.next(), " \t")
	if line == "" || line[0] == '#' {
		return true
	}
	origin := fmt.Sprintf("%s:%d", e.path, e.line)
	key, value, given := strings.Cut(line, "=")
	if e.Dotenv {
		key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
	}
	if why := BadKey(key); why != "" {
		e.fail(fmt.Errorf("%s: %q can't be a key: %s; does the value of the line before go on here? Quoted values of several lines need --env-format=dotenv, or store the value with --from-file", origin, shown(key), why))
		return false
	}
	var err error
	switch {
	case !given:
		value, err = e.inherited(key)
	case e.Dotenv:
		value, err = e.dotenv(value)
	case Unclosed(value):
		err = fmt.Errorf("the value of %s begins with a quote that isn't closed on its line; if it goes on, read the file with --env-format=dotenv, or store the value with --from-file", key)
	}
	if err != nil {
		e.fail(fmt.Errorf("%s: %w", origin, err))
		return !given
	}
	e.add(key, []byte(value), origin)
	return true
}

// shown is a key that is none, short enough for a message.
func shown(key string) string {
	const limit = 40
	if len(key) > limit {
		return strings.ToValidUTF8(key[:limit], "") + "..."
	}
	return key
}

func (e *env) inherited(key string) (string, error) {
	value, ok := os.LookupEnv(key)
	if !ok {
		return "", fmt.Errorf("%s has no value, and the environment has none for it; write %s= for an empty one", key, key)
	}
	e.Note("%s:%d: %s is taken from the environment", e.path, e.line, key)
	return value, nil
}

// Unclosed tells a value whose first quote has no second: what follows on the
// next lines would be taken for keys.
func Unclosed(value string) bool {
	return value != "" && (value[0] == '"' || value[0] == '\'') && strings.Count(value, value[:1]) == 1
}

// dotenv reads a value that begins so: without its quotes, which may be lines
// apart, or up to a comment. Variables in it are not expanded.
func (e *env) dotenv(begin string) (string, error) {
	begin = strings.TrimLeft(begin, " \t")
	if begin == "" || begin[0] != '"' && begin[0] != '\'' {
		for i := range begin {
			if begin[i] == '#' && (i == 0 || begin[i-1] == ' ' || begin[i-1] == '\t') {
				begin = begin[:i]
				break
			}
		}
		return strings.TrimRight(begin, " \t"), nil
	}
	quote := begin[0]
	var value strings.Builder
	for rest := begin[1:]; ; {
		end := closing(rest, quote)
		if end >= 0 {
			if after := strings.TrimSpace(rest[end+1:]); after != "" && after[0] != '#' {
				return "", fmt.Errorf("%q follows the closing quote", shown(after))
			}
			value.WriteString(rest[:end])
			break
		}
		if e.text == "" {
			return "", fmt.Errorf("the quote that begins the value is never closed")
		}
		value.WriteString(rest + "\n")
		rest = e.next()
	}
	if quote == '\'' {
		return value.String(), nil
	}
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\$`, "$").Replace(value.String()), nil
}

// closing is the place of the quote that ends the value, -1 if it is not in this
// line. Inside double quotes a backslash takes the meaning from the next one.
func closing(line string, quote byte) int {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quote == '"':
			i++
		case line[i] == quote:
			return i
		}
	}
	return -1
}
