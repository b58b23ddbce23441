package authn_test

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

func hexOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func TestParseTokens(t *testing.T) {
	const other = "zyxwvutsrqponmlkjihgfedcba"
	for name, test := range map[string]struct {
		file    string
		user    string   // of goodToken
		groups  []string // and of what
		warns   string
		refused string
	}{
		"a user":                {goodToken + ",jane,u-1", "jane", nil, "", ""},
		"a user without uid":    {goodToken + ",jane,", "jane", nil, "", ""},
		"a group":               {goodToken + ",jane,u-1,devs\n", "jane", []string{"devs"}, "", ""},
		"groups":                {goodToken + `,jane,u-1,"devs,ops"` + "\r\n", "jane", []string{"devs", "ops"}, "", ""},
		"no groups":             {goodToken + `,jane,u-1,""`, "jane", nil, "", ""},
		"hashed":                {"sha256:" + hexOf(goodToken) + ",jane,u-1,devs", "jane", []string{"devs"}, "", ""},
		"hashed, upper case":    {"sha256:" + strings.ToUpper(hexOf(goodToken)) + ",jane,u-1", "jane", nil, "", ""},
		"quoted names":          {goodToken + `,"Jane ""J"" Doe",u-1`, `Jane "J" Doe`, nil, "", ""},
		"comments":              {"# of May\n\n#" + goodToken + ",joe,\n" + goodToken + ",jane,\n", "jane", nil, "", ""},
		"several":               {other + ",joe,\n" + goodToken + ",jane,", "jane", nil, "", ""},
		"only a comment":        {"#" + goodToken + ",jane,", "", nil, "no token", ""},
		"empty":                 {"", "", nil, "no token", ""},
		"a short token":         {"secret,joe,\n" + goodToken + ",jane,", "jane", nil, "line 1: its token is shorter", ""},
		"two fields":            {goodToken + ",jane", "", nil, "", "line 1: it has 2 fields"},
		"groups without quotes": {goodToken + ",jane,u-1,devs,ops", "", nil, "", "double quotes"},
		"an empty token":        {goodToken + ",jane,u-1\n,joe,u-2", "", nil, "", "line 2: its token is empty"},
		"a token with a space":  {" " + goodToken + ",jane,u-1", "", nil, "", "line 1"},
		"a byte order mark":     {"\ufeff" + goodToken + ",jane,u-1", "", nil, "", "line 1"},
		"a bad digest":          {"sha256:abc,jane,u-1", "", nil, "", "line 1: after sha256: there must be 64"},
		"no digest":             {"sha256:,jane,u-1", "", nil, "", "64 hexadecimal"},
		"no user":               {goodToken + ",,u-1", "", nil, "", "line 1: its user is empty"},
		"a user with a space":   {goodToken + ", jane,u-1", "", nil, "", "space"},
		"an empty group":        {goodToken + `,jane,u-1,"devs,"`, "", nil, "", "groups is empty"},
		"a group with a space":  {goodToken + `,jane,u-1,"devs, ops"`, "", nil, "", "begins or ends"},
		"twice":                 {goodToken + ",jane,\n" + goodToken + ",joe,", "", nil, "", "line 2: its token is on an earlier line"},
		"twice, once hashed":    {goodToken + ",jane,\nsha256:" + hexOf(goodToken) + ",joe,", "", nil, "", "line 2"},
		"a loose quote":         {goodToken + `,ja"ne,u-1`, "", nil, "", "line 1"},
		"an open quote":         {goodToken + `,jane,u-1,"devs`, "", nil, "", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, warnings, err := authn.ParseTokens(strings.NewReader(test.file))
			if all := strings.Join(warnings, "\n"); (test.warns == "") != (all == "") || !strings.Contains(all, test.warns) {
				t.Errorf("warnings: %q", all)
			}
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || strings.Contains(err.Error(), goodToken) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := tokens.Token(t.Context(), goodToken)
			if (got == nil) != (test.user == "") || err != nil {
				t.Fatalf("it is %v, %v", got, err)
			}
			if got != nil && (got.Name != test.user || !slices.Equal(got.Groups, test.groups)) {
				t.Errorf("it is %v", got)
			}
			for _, wrong := range []string{"", "sha256:" + hexOf(goodToken), hexOf(goodToken), goodToken + "x", "#" + goodToken} {
				if got, err := tokens.Token(t.Context(), wrong); got != nil || err != nil {
					t.Errorf("%q is %v, %v", wrong, got, err)
				}
			}
		})
	}
}

func TestTokenLineIsRead(t *testing.T) {
	for _, who := range []*user.DefaultInfo{
		{Name: "jane"},
		{Name: "jane", UID: "u-1", Groups: []string{"devs"}},
		{Name: `Jane "J", Doe`, Groups: []string{"system:masters", "ops"}},
	} {
		token := authn.NewToken()
		line, err := authn.TokenLine(token, who)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, token) || len(token) < 43 {
			t.Errorf("the line of %q is %q", token, line)
		}
		tokens, warnings, err := authn.ParseTokens(strings.NewReader(line))
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		got, _ := tokens.Token(t.Context(), token)
		if got == nil || got.Name != who.Name || got.UID != who.UID || !slices.Equal(got.Groups, who.Groups) {
			t.Errorf("%v came back as %v", who, got)
		}
	}
	for _, who := range []*user.DefaultInfo{{Name: ""}, {Name: " jane"}, {Name: "a\nb"}, {Name: "jane", Groups: []string{"a,b"}}, {Name: "jane", Groups: []string{""}}} {
		if line, err := authn.TokenLine("x", who); err == nil {
			t.Errorf("%v: %q", who, line)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add(goodToken+`,jane,u-1,"devs,ops"`, goodToken)
	f.Add("sha256:"+hexOf("x")+",jane,", "x")
	f.Add("#a,b,c\na,b,c", "#a")
	f.Fuzz(func(t *testing.T, file, token string) {
		tokens, _, err := authn.ParseTokens(strings.NewReader(file))
		if err != nil {
			return
		}
		got, _ := tokens.Token(t.Context(), token)
		if got == nil {
			return
		}
		// Whoever is let in stands on a line, by name, with the token or its digest.
		lines := csv.NewReader(strings.NewReader(file))
		lines.FieldsPerRecord, lines.Comment = -1, '#'
		all, err := lines.ReadAll()
		if err != nil || !slices.ContainsFunc(all, func(fields []string) bool {
			return fields[1] == got.Name && (fields[0] == token || strings.EqualFold(fields[0], "sha256:"+hexOf(token)))
		}) {
			t.Errorf("%q lets %q in as %v", file, token, got)
		}
	})
}
