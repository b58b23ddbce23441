package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"k8s.io/apiserver/pkg/authentication/user"
)

// digest stands for a token.
type digest [sha256.Size]byte

// Tokens are the tokens of a file, with their users. They never change.
type Tokens struct {
	// Tokens are not compared: what is looked up is a digest with a key that nobody
	// outside knows, so that the time of a comparison tells nothing of a token.
	key   [sha256.Size]byte
	users map[digest]*user.DefaultInfo
}

func newTokens() *Tokens {
	t := &Tokens{users: map[digest]*user.DefaultInfo{}}
	_, _ = rand.Read(t.key[:]) // it never fails
	return t
}

func (t *Tokens) keyed(d digest) digest {
	return sha256.Sum256(append(t.key[:], d[:]...))
}

// Token implements TokenIssuer.
func (t *Tokens) Token(_ context.Context, token string) (*user.DefaultInfo, error) {
	return t.users[t.keyed(sha256.Sum256([]byte(token)))], nil
}

// CurrentTokens are Tokens that may be others with each request.
type CurrentTokens func() *Tokens

// Token implements TokenIssuer.
func (f CurrentTokens) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	return f().Token(ctx, token)
}

// hashed begins the field of a token of which the file has only the SHA-256.
const hashed = "sha256:"

// shortToken is the length below which a token could be guessed.
const shortToken = 22

// ParseTokens reads tokens in Kubernetes' form, a line each:
//
//	token,user,uid
//	token,user,uid,"group1,group2"
//	sha256:9f86d0…,user,uid,"group1,group2"
//
// The third says the SHA-256 of the token in place of the token itself. Empty lines,
// and those that begin with #, are left out. A file of which anything is not
// understood is refused whole. The warnings, and the error, name lines and no tokens.
func ParseTokens(file io.Reader) (t *Tokens, warnings []string, err error) {
	t = newTokens()
	lines := csv.NewReader(file)
	lines.FieldsPerRecord, lines.Comment = -1, '#'
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err // names the line
		}
		line, _ := lines.FieldPos(0)
		warning, err := t.add(fields)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		if warning != "" {
			warnings = append(warnings, fmt.Sprintf("line %d: %s", line, warning))
		}
	}
	if len(t.users) == 0 {
		warnings = append(warnings, "there is no token in it")
	}
	return t, warnings, nil
}

// add adds the token of a line.
func (t *Tokens) add(fields []string) (warning string, err error) {
	if len(fields) < 3 || len(fields) > 4 {
		return "", fmt.Errorf("it has %d fields, not token,user,uid or token,user,uid,\"group1,group2\": several groups go into one field in double quotes", len(fields))
	}
	d, warning, err := digestOf(fields[0])
	if err != nil {
		return "", err
	}
	who := &user.DefaultInfo{Name: fields[1], UID: fields[2]}
	if len(fields) == 4 && fields[3] != "" {
		who.Groups = strings.Split(fields[3], ",")
	}
	if err := CheckNames(who); err != nil {
		return "", err
	}
	d = t.keyed(d)
	if t.users[d] != nil {
		return "", errors.New("its token is on an earlier line too")
	}
	t.users[d] = who
	return warning, nil
}

func digestOf(field string) (d digest, warning string, err error) {
	text, isHash := strings.CutPrefix(field, hashed)
	switch {
	case isHash:
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != len(d) {
			return d, "", fmt.Errorf("after %s there must be %d hexadecimal digits", hashed, 2*len(d))
		}
		return digest(raw), "", nil
	case !isTokenText(field):
		return d, "", errors.New("its token is empty, or has spaces, commas or other characters that no header carries")
	case len(field) < shortToken:
		warning = fmt.Sprintf("its token is shorter than %d characters and could be guessed: 'cmserver token' makes a good one", shortToken)
	}
	return sha256.Sum256([]byte(field)), warning, nil
}

// CheckNames refuses a user whose names are very likely not what was meant, or look
// like another's: an empty name or group, and spaces around, or control characters
// within, name, UID and groups.
func CheckNames(u *user.DefaultInfo) error {
	odd := func(s string) bool { return strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl) }
	if u.Name == "" || odd(u.Name) || odd(u.UID) {
		return errors.New("its user is empty, or user or uid begin or end with a space or have control characters")
	}
	for _, group := range u.Groups {
		if group == "" || odd(group) {
			return errors.New("one of its groups is empty, begins or ends with a space, or has control characters")
		}
	}
	return nil
}

// NewToken makes a token that nobody can guess.
func NewToken() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// TokenLine is the line of a user for a file of tokens, with the SHA-256 of the token.
// It ends with a line feed. Names that a file can't have are an error.
func TokenLine(token string, u user.Info) (string, error) {
	sum := sha256.Sum256([]byte(token))
	fields := []string{hashed + hex.EncodeToString(sum[:]), u.GetName(), u.GetUID()}
	for _, group := range u.GetGroups() {
		if group == "" || strings.Contains(group, ",") {
			return "", fmt.Errorf("group %q: the name of a group is not empty and has no comma", group)
		}
	}
	if groups := strings.Join(u.GetGroups(), ","); groups != "" {
		fields = append(fields, groups)
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	_ = w.Write(fields) // to memory
	w.Flush()
	if _, _, err := ParseTokens(strings.NewReader(line.String())); err != nil {
		return "", fmt.Errorf("user %q: %w", u.GetName(), err)
	}
	return line.String(), nil
}
