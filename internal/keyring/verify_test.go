package keyring

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"envapi/core"
)

const (
	testIssuer   = "https://keyring.test"
	testAudience = "envapi"
)

var testNow = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func testClock() time.Time { return testNow }

func closedContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

type m = map[string]any

// at gives the second that lies d from now.
func at(d time.Duration) int64 { return testNow.Add(d).Unix() }

func goodHeader() m { return m{"typ": "at+jwt", "alg": "ES256", "kid": "p256"} }

func goodClaims() m {
	return m{
		"iss": testIssuer, "aud": testAudience, "sub": "alice",
		"iat": at(-time.Minute), "exp": at(time.Hour), "scope": "exec environments:read",
	}
}

// header and claims give the good ones with changes; nil removes a member.
func headerWith(changes m) string { return jsonWith(goodHeader(), changes) }
func claimsWith(changes m) string { return jsonWith(goodClaims(), changes) }

// signed gives a token of the good key for a header and claims as JSON.
func signed(header, claims string) string { return compact("ES256", "p256", header, claims) }

func TestVerifyAcceptsEveryAlgorithmOfItsKey(t *testing.T) {
	k := keyringWith(t, allKeys())
	for alg, key := range keyFor {
		raw := compact(alg, key, headerWith(m{"alg": alg, "kid": key}), claimsWith(nil))
		if _, err := k.Verify(t.Context(), raw); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
	}
}

func TestVerifyGivesTheCallerOfTheClaims(t *testing.T) {
	read := []core.Scope{core.ScopeEnvironmentsRead, core.ScopeExec}
	for name, c := range map[string]struct {
		claims m
		want   core.Caller
	}{
		"the profile is default where absent": {nil, core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: read}},
		"profile":                             {m{"profile": "work"}, core.Caller{Owner: core.Owner{Account: "alice", Profile: "work"}, Scopes: read}},
		"a list of audiences":                 {m{"aud": []string{"x", testAudience}}, core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: read}},
		"no scope":                            {m{"scope": nil}, core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}}},
		"foreign and similar scopes are left out": {
			m{"scope": "mail exec:all Exec files:read"},
			core.Caller{Owner: core.Owner{Account: "alice", Profile: "default"}, Scopes: []core.Scope{core.ScopeFilesRead}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := keyringWith(t, allKeys()).Verify(t.Context(), signed(headerWith(nil), claimsWith(c.claims)))
			c.want.Until = testNow.Add(time.Hour + 30*time.Second)
			until := got.Until.Equal(c.want.Until)
			got.Until = c.want.Until // in whatever zone
			if err != nil || !until || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestVerifyHonoursSkewAndLifetimeToTheSecond(t *testing.T) {
	for name, c := range map[string]struct {
		claims m
		want   bool
	}{
		"expired within the skew":     {m{"exp": at(-29 * time.Second)}, true},
		"expired beyond the skew":     {m{"exp": at(-30 * time.Second)}, false},
		"issued within the skew":      {m{"iat": at(30 * time.Second)}, true},
		"issued beyond the skew":      {m{"iat": at(31 * time.Second)}, false},
		"not before, within the skew": {m{"nbf": at(30 * time.Second)}, true},
		"not before, beyond the skew": {m{"nbf": at(31 * time.Second)}, false},
		"lives 24 hours":              {m{"iat": at(0), "exp": at(24 * time.Hour)}, true},
		"lives a second longer":       {m{"iat": at(0), "exp": at(24*time.Hour + time.Second)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keyringWith(t, allKeys()).Verify(t.Context(), signed(headerWith(nil), claimsWith(c.claims)))
			if (err == nil) != c.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestVerifyAcceptsOtherTypesOnlyWhereSet(t *testing.T) {
	for _, c := range []struct {
		typ   string
		types []string
		want  bool
	}{
		{"at+jwt", nil, true},
		{"application/at+jwt", nil, true},
		{"JWT", nil, false},
		{"JWT", []string{TypeJWT}, true},
		{"application/JWT", []string{TypeJWT}, false},
		{"at+JWT", []string{TypeJWT}, false},
	} {
		_, err := keyringWith(t, allKeys(), c.types...).Verify(t.Context(), signed(headerWith(m{"typ": c.typ}), claimsWith(nil)))
		if (err == nil) != c.want {
			t.Errorf("typ %q with types %v: %v", c.typ, c.types, err)
		}
	}
}

// refusedTokens are tokens that must not be accepted, by the rows of
// cases E.
func refusedTokens() map[string]string {
	all := map[string]string{}
	for _, group := range []map[string]string{refusedForms(), refusedHeaders(), refusedClaims(), refusedSignatures()} {
		for name, raw := range group {
			all[name] = raw
		}
	}
	return all
}

func refusedForms() map[string]string {
	good := signed(headerWith(nil), claimsWith(nil))
	parts := strings.Split(good, ".")
	evil := claimsWith(m{"sub": "mallory"})
	outer := strings.TrimSuffix(evil, "}")
	forms := map[string]string{
		"E1 flattened JSON": outer + `,"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"E1 general JSON":   outer + `,"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`,
		"E1 bare claims":    evil,

		"E6 a member twice in the header":   signed(`{"typ":"at+jwt","alg":"ES256","kid":"other","kid":"p256"}`, claimsWith(nil)),
		"E6 a claim twice":                  signed(headerWith(nil), `{"sub":"mallory",`+claimsWith(nil)[1:]),
		"E6 a claim twice, one escaped":     signed(headerWith(nil), `{"\u0073ub":"mallory",`+claimsWith(nil)[1:]),
		"E6 a member twice, deep":           signed(headerWith(nil), `{"x":[{"a":1,"a":2}],`+claimsWith(nil)[1:]),
		"E6 JSON after the header":          signed(headerWith(nil)+`{}`, claimsWith(nil)),
		"E6 JSON after the claims":          signed(headerWith(nil), claimsWith(nil)+` {"sub":"mallory"}`),
		"E6 a comma too much":               signed(headerWith(nil), strings.TrimSuffix(claimsWith(nil), "}")+`,}`),
		"E6 nested too deeply":              signed(headerWith(nil), `{"x":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`,`+claimsWith(nil)[1:]),
		"E6 UTF-8 that is none":             signed(headerWith(nil), claimsWith(m{"sub": "al"})[:5]+"\xff"+claimsWith(nil)[5:]),
		"E6 a sub with half a character":    signed(headerWith(nil), strings.Replace(claimsWith(nil), "alice", `\ud800`, 1)),
		"E6 a name with half a character":   signed(headerWith(nil), `{"\udc00":1,`+claimsWith(nil)[1:]),
		"E6 claims that are an array":       signed(headerWith(nil), `[`+claimsWith(nil)+`]`),
		"E6 claims that are null":           signed(headerWith(nil), `null`),
		"E6 a header that is a string":      signed(`"x"`, claimsWith(nil)),
		"E6 padding on the signature":       good + "==",
		"E6 padding on the header":          parts[0] + "=." + parts[1] + "." + parts[2],
		"E6 an altered last character":      alterLast(good),
		"E6 a space before":                 " " + good,
		"E6 a newline after":                good + "\n",
		"E6 a newline inside":               parts[0] + "." + parts[1][:8] + "\n" + parts[1][8:] + "." + parts[2],
		"E6 a carriage return in signature": good[:len(good)-2] + "\r" + good[len(good)-2:],
		"E6 four parts":                     good + ".x",
		"E6 two parts":                      parts[0] + "." + parts[1],
		"E6 five parts, as encrypted":       good + "." + parts[1] + "." + parts[2],
		"E6 empty":                          "",
		"E6 empty payload":                  parts[0] + ".." + parts[2],
		"E7 8 KiB and a byte":               signed(headerWith(nil), claimsWith(m{"x": strings.Repeat("x", MaxTokenBytes)}))[:MaxTokenBytes+1],
		"E7 a good one that is too long":    signed(headerWith(nil), claimsWith(m{"x": strings.Repeat("x", MaxTokenBytes)})),
		"E7 8 MB":                           strings.Repeat("x", 8<<20),
	}
	std := base64.RawStdEncoding.EncodeToString([]byte(claimsWith(m{"sub": "a?>~~~???>>>"})))
	forms["E6 standard base64"] = parts[0] + "." + std + "." + b64(signature("ES256", "p256", []byte(parts[0]+"."+std)))
	return forms
}

// alterLast changes bits of the last character that do not reach the decoded
// signature. (64 bytes leave four such bits.)
func alterLast(raw string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, raw[len(raw)-1])
	return raw[:len(raw)-1] + string(alphabet[last^1])
}

func refusedHeaders() map[string]string {
	header := func(changes m) string { return signed(headerWith(changes), claimsWith(nil)) }
	all := map[string]string{
		"E2 crit unknown": header(m{"crit": []string{"x"}, "x": 1}),
		"E2 crit empty":   header(m{"crit": []string{}}),
		"E2 crit null":    signed(`{"crit":null,`+headerWith(nil)[1:], claimsWith(nil)),
		"E2 crit b64":     header(m{"crit": []string{"b64"}, "b64": true}),
		"E2 b64 false":    header(m{"b64": false}),
		"E2 jku":          header(m{"jku": "https://evil.test/jwks"}),
		"E2 jwk":          header(m{"jwk": jwkOf("other", nil)}),
		"E2 x5u":          header(m{"x5u": "https://evil.test/cert"}),
		"E2 x5c":          header(m{"x5c": []string{"AA"}}),
		"E2 x5t":          header(m{"x5t": "AA"}),
		"E2 x5t#S256":     header(m{"x5t#S256": "AA"}),
		"E2 cty":          header(m{"cty": "JWT"}),
		"E2 zip":          header(m{"zip": "DEF"}),
		"E3 typ JWT":      header(m{"typ": "JWT"}),
		"E3 typ missing":  header(m{"typ": nil}),
		"E3 typ a list":   header(m{"typ": []string{"at+jwt"}}),
		"E3 typ of an id": header(m{"typ": "id+jwt"}),
		"E4 alg missing":  header(m{"alg": nil}),
		"E4 alg another":  header(m{"alg": "ES384"}),
		"E4 alg of RSA":   header(m{"alg": "RS256"}),
		"E4 alg a number": header(m{"alg": 256}),
		"E4 ALG":          header(m{"alg": nil, "ALG": "ES256"}),
		"E9 kid missing":  header(m{"kid": nil}),
		"E9 kid empty":    header(m{"kid": ""}),
		"E9 kid unknown":  header(m{"kid": "nobody"}),
		"E9 kid another":  header(m{"kid": "p384"}),
		"E9 kid a number": header(m{"kid": 1}),
		"E9 kid a list":   header(m{"kid": []string{"p256"}}),
		"E9 kid with NUL": header(m{"kid": "p256\x00"}),
	}
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "", "HS256", "HS512", "es256", "ES256K"} {
		all["E9 alg "+alg] = header(m{"alg": alg})
	}
	return all
}

func refusedClaims() map[string]string {
	claims := func(changes m) string { return signed(headerWith(nil), claimsWith(changes)) }
	raw := func(name, value string) string {
		return signed(headerWith(nil), `{"`+name+`":`+value+`,`+claimsWith(m{name: nil})[1:])
	}
	all := map[string]string{
		"E5 exp missing":                 claims(m{"exp": nil}),
		"E5 exp EXP":                     claims(m{"exp": nil, "EXP": at(time.Hour)}),
		"E5 iat missing":                 claims(m{"iat": nil}),
		"E5 lifetime over 24 h":          claims(m{"exp": at(48 * time.Hour)}),
		"E5 lifetime of nothing":         claims(m{"iat": at(20 * time.Second), "exp": at(20 * time.Second)}),
		"E5 lifetime below nothing":      claims(m{"iat": at(20 * time.Second), "exp": at(10 * time.Second)}),
		"E9 iss another":                 claims(m{"iss": "https://evil.test"}),
		"E9 iss prefixed":                claims(m{"iss": testIssuer + ".evil.test"}),
		"E9 iss with a slash":            claims(m{"iss": testIssuer + "/"}),
		"E9 iss missing":                 claims(m{"iss": nil}),
		"E9 iss a list":                  claims(m{"iss": []string{testIssuer}}),
		"E9 aud another":                 claims(m{"aud": "mail"}),
		"E9 aud prefixed":                claims(m{"aud": testAudience + "-admin"}),
		"E9 aud missing":                 claims(m{"aud": nil}),
		"E9 aud empty list":              claims(m{"aud": []string{}}),
		"E9 aud nested":                  claims(m{"aud": []any{[]string{testAudience}}}),
		"E9 aud with null":               claims(m{"aud": []any{testAudience, nil}}),
		"E9 aud with a number":           claims(m{"aud": []any{testAudience, 1}}),
		"E9 aud an object":               claims(m{"aud": m{testAudience: true}}),
		"E9 expired":                     claims(m{"iat": at(-2 * time.Hour), "exp": at(-time.Hour)}),
		"E9 future iat":                  claims(m{"iat": at(10 * time.Minute)}),
		"E9 future iat, nbf in the past": claims(m{"iat": at(10 * time.Minute), "nbf": at(-time.Minute)}),
		"E9 future nbf":                  claims(m{"nbf": at(10 * time.Minute)}),
		"E9 sub missing":                 claims(m{"sub": nil}),
		"E9 sub empty":                   claims(m{"sub": ""}),
		"E9 sub a number":                claims(m{"sub": 7}),
		"E9 sub too long":                claims(m{"sub": strings.Repeat("a", 256)}),
		"E9 sub with a newline":          claims(m{"sub": "alice\nroot"}),
		"E9 sub with a hidden letter":    claims(m{"sub": "ali\u200bce"}),
		"E9 profile empty":               claims(m{"profile": ""}),
		"E9 profile a list":              claims(m{"profile": []string{"work"}}),
		"E9 profile with NUL":            claims(m{"profile": "work\x00"}),
		"E9 scope a list":                claims(m{"scope": []string{"exec"}}),
	}
	for _, name := range []string{"exp", "iat", "nbf"} {
		for _, value := range []string{
			"0", "-1", "1e18", "1000000000000000000", "1e999", "99999999999999999999999", "9223372036854775807",
			`"1893553445"`, "1893553445.5", "1893553445.0", "1.893553445e9", "null", "true", "[1893553445]",
		} {
			all["E5 "+name+" "+value] = raw(name, value)
		}
	}
	for _, name := range []string{"sub", "iss", "aud", "profile", "scope"} {
		all["E9 "+name+" null"] = raw(name, "null")
	}
	return all
}

func refusedSignatures() map[string]string {
	good := signed(headerWith(nil), claimsWith(nil))
	parts := strings.Split(good, ".")
	flipped := must(base64.RawURLEncoding.DecodeString(parts[2]))
	flipped[10] ^= 1
	hs := headerWith(m{"alg": "HS256", "kid": "rsa"})
	return map[string]string{
		"E9 empty signature":           parts[0] + "." + parts[1] + ".",
		"E9 alg none, unsigned":        b64([]byte(headerWith(m{"alg": "none"}))) + "." + parts[1] + ".",
		"E9 HS256 with the public key": hmacOver("rsa", hs, claimsWith(nil)),
		"E9 HS256 said to be RS256":    hmacOver("rsa", headerWith(m{"alg": "RS256", "kid": "rsa"}), claimsWith(nil)),
		"E9 another's key":             compact("ES256", "other", headerWith(nil), claimsWith(nil)),
		"E9 a flipped bit":             parts[0] + "." + parts[1] + "." + b64(flipped),
		"E9 half a signature":          parts[0] + "." + parts[1] + "." + parts[2][:40],
		"E9 a signature of zeros":      parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
		"E9 other claims":              parts[0] + "." + b64([]byte(claimsWith(m{"sub": "mallory"}))) + "." + parts[2],
		"E4 PS256 signed as RS256": compact("RS256", "rsa",
			headerWith(m{"alg": "PS256", "kid": "rsa"}), claimsWith(nil)),
	}
}

func TestVerifyRefuses(t *testing.T) {
	k := keyringWith(t, allKeys())
	for name, raw := range refusedTokens() {
		t.Run(name, func(t *testing.T) {
			caller, err := k.Verify(t.Context(), raw)
			var e *core.Error
			if !errors.As(err, &e) || e.Code != core.CodeUnauthenticated {
				t.Fatalf("got %+v, %v; want unauthenticated", caller, err)
			}
			if !reflect.DeepEqual(caller, core.Caller{}) {
				t.Errorf("a refused token gave %+v", caller)
			}
			for _, inside := range []string{testIssuer, "p256", "mallory", "jwx", "ecdsa", "json:"} {
				if strings.Contains(err.Error(), inside) {
					t.Errorf("the reason tells of the inside: %v", err)
				}
			}
		})
	}
}

// The rows above are only worth something where their good neighbour passes.
func TestVerifyAcceptsTheNeighboursOfTheRefused(t *testing.T) {
	k := keyringWith(t, allKeys())
	for name, raw := range map[string]string{
		"an unknown member of the header":  signed(headerWith(m{"x": 1}), claimsWith(nil)),
		"claims of no meaning here":        signed(headerWith(nil), claimsWith(m{"jti": "1", "act": m{"sub": "x"}})),
		"white space in the claims' JSON":  signed(headerWith(nil), " "+claimsWith(nil)+"\n"),
		"a sub of 255 bytes":               signed(headerWith(nil), claimsWith(m{"sub": strings.Repeat("a", 255)})),
		"a sub beyond ASCII":               signed(headerWith(nil), claimsWith(m{"sub": "josé 李"})),
		"the same member in two objects":   signed(headerWith(nil), claimsWith(m{"x": m{"a": 1}, "y": m{"a": 1}})),
		"a token of almost 8 KiB":          signed(headerWith(nil), claimsWith(m{"x": strings.Repeat("x", 5500)})),
		"a surrogate pair that is whole":   signed(headerWith(nil), strings.Replace(claimsWith(nil), "alice", `\ud83d\ude00`, 1)),
		"nbf now":                          signed(headerWith(nil), claimsWith(m{"nbf": at(0)})),
		"an empty scope":                   signed(headerWith(nil), claimsWith(m{"scope": ""})),
		"standard base64 where it is same": signed(headerWith(nil), claimsWith(m{"sub": "plain"})),
	} {
		if _, err := k.Verify(t.Context(), raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifySaysNothingOfTheTokenInItsError(t *testing.T) {
	raw := signed(headerWith(nil), claimsWith(m{"sub": "secret-name", "exp": at(-time.Hour), "iat": at(-2 * time.Hour)}))
	_, err := keyringWith(t, allKeys()).Verify(t.Context(), raw)
	text := string(must(json.Marshal(core.AsError(err)))) + err.Error()
	if strings.Contains(text, "secret-name") || strings.Contains(text, raw[:20]) {
		t.Errorf("the error holds parts of the token: %s", text)
	}
}
