package authn

import (
	"errors"
	"net/http"
	"strings"
)

// bearerToken is the token that a request carries, empty if it has no Authorization
// header. Any header of that name must be a sound one: what another program in front
// might read in another way is refused.
func bearerToken(h http.Header) (string, error) {
	values := h.Values("Authorization")
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", errors.New("it has more than one Authorization header")
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", errors.New("its Authorization header is no bearer token's: only 'Authorization: Bearer TOKEN' is taken here")
	case !ok || token == "":
		return "", errors.New("its bearer token is empty")
	case !isTokenText(token):
		return "", errors.New("its bearer token has spaces or other characters that no token has, or is two")
	}
	return token, nil
}

// isTokenText tells whether a text can be a token: printable ASCII without spaces,
// and without the comma that joins headers to one.
func isTokenText(token string) bool {
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' || c == ',' {
			return false
		}
	}
	return token != ""
}
