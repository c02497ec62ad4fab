package keyring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"envapi/core"
)

// The types of token, as settings name them.
const (
	TypeAccessToken = "at+jwt" // RFC 9068, also as application/at+jwt
	TypeJWT         = "JWT"
)

const (
	// skew is how far the clocks of keyring and of this host may differ.
	skew = 30 * time.Second
	// maxLifetime bounds how long a stolen token works.
	maxLifetime = 24 * time.Hour
	// maxName bounds the names of accounts, profiles and keys, in bytes: the
	// bound that OpenID Connect gives sub.
	maxName = 255
	// maxDate is the last second of the year 9999, after which time.Time
	// cannot be written down.
	maxDate = 253402300799
)

// rules are what a token must say.
type rules struct {
	issuer, audience string
	types            []string
}

// header is what the header of a token says about its signature.
type header struct{ alg, kid string }

// refusedMembers are the members of a header that bring a key along, point to
// one, or change what the rest means. None is ever needed here.
var refusedMembers = []string{"crit", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "b64", "zip", "cty"}

func (r rules) header(m members) (header, error) {
	for _, name := range refusedMembers {
		if _, ok := m[name]; ok {
			return header{}, refusal(fmt.Sprintf("its header has the member %q", name))
		}
	}
	if typ, _ := m.str("typ"); !slices.Contains(r.types, typ) {
		return header{}, refusal("it is not of the type of an access token")
	}
	alg, _ := m.str("alg")
	if !slices.Contains(algorithms, alg) {
		return header{}, refusal("it is not signed with an algorithm that is accepted")
	}
	kid, _ := m.str("kid")
	if !validName(kid) {
		return header{}, refusal("its header does not name a key")
	}
	return header{alg: alg, kid: kid}, nil
}

// caller gives the caller that verified claims name at the moment now.
func (r rules) caller(m members, now time.Time) (core.Caller, error) {
	if iss, _ := m.str("iss"); iss != r.issuer {
		return core.Caller{}, refusal("it is from another issuer")
	}
	if !slices.Contains(audiences(m), r.audience) {
		return core.Caller{}, refusal("it is not meant for this service")
	}
	if err := checkTimes(m, now); err != nil {
		return core.Caller{}, err
	}
	owner, err := owner(m)
	if err != nil {
		return core.Caller{}, err
	}
	scopes, err := scopes(m)
	exp, _ := m.date("exp") // checkTimes has seen it
	return core.Caller{Owner: owner, Scopes: scopes, Until: exp.Add(skew)}, err
}

// audiences gives the claim aud: a string, or an array of nothing but strings.
func audiences(m members) []string {
	if one, ok := m.str("aud"); ok {
		return []string{one}
	}
	var many []*string // pointers, since null would pass for ""
	if json.Unmarshal(m["aud"], &many) != nil || slices.Contains(many, nil) {
		return nil
	}
	all := make([]string, len(many))
	for i, a := range many {
		all[i] = *a
	}
	return all
}

func checkTimes(m members, now time.Time) error {
	exp, ok := m.date("exp")
	if !ok {
		return refusal("its claim exp is missing or not a date in whole seconds")
	}
	iat, ok := m.date("iat")
	if !ok {
		return refusal("its claim iat is missing or not a date in whole seconds")
	}
	nbf := iat
	if _, given := m["nbf"]; given {
		if nbf, ok = m.date("nbf"); !ok {
			return refusal("its claim nbf is not a date in whole seconds")
		}
	}
	switch lifetime := exp.Sub(iat); {
	case !now.Before(exp.Add(skew)):
		return refusal("it has expired")
	case iat.After(now.Add(skew)), nbf.After(now.Add(skew)):
		return refusal("it is not valid yet")
	case lifetime <= 0, lifetime > maxLifetime:
		return refusal("its lifetime is not within 24 hours")
	}
	return nil
}

// date gives a member that is a NumericDate in whole seconds, written as a
// plain integer.
func (m members) date(name string) (time.Time, bool) {
	n, err := strconv.ParseInt(string(m[name]), 10, 64)
	return time.Unix(n, 0), err == nil && n > 0 && n <= maxDate
}

func owner(m members) (core.Owner, error) {
	sub, _ := m.str("sub")
	if !validName(sub) {
		return core.Owner{}, refusal("its claim sub is missing or not a name")
	}
	profile := "default"
	if _, given := m["profile"]; given {
		if profile, _ = m.str("profile"); !validName(profile) {
			return core.Owner{}, refusal("its claim profile is not a name")
		}
	}
	return core.Owner{Account: sub, Profile: profile}, nil
}

// validName says whether s can name an account, a profile or a key: not empty,
// bounded, and nothing in it that a log or a screen would not show.
func validName(s string) bool {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	return s != "" && len(s) <= maxName && strings.IndexFunc(s, hidden) < 0
}

// scopes gives the scopes of this service that a token carries; those of other
// services are left out.
func scopes(m members) ([]core.Scope, error) {
	if _, given := m["scope"]; !given {
		return nil, nil
	}
	all, ok := m.str("scope")
	if !ok {
		return nil, refusal("its claim scope is not a string")
	}
	var known []core.Scope
	for _, s := range core.AllScopes {
		if slices.Contains(strings.Split(all, " "), string(s)) {
			known = append(known, s)
		}
	}
	return known, nil
}

// acceptedTypes gives the values of the header typ for the types of a setting.
func acceptedTypes(types []string) []string {
	var all []string
	for _, t := range types {
		all = append(all, t)
		if t == TypeAccessToken {
			all = append(all, "application/"+t)
		}
	}
	return all
}
