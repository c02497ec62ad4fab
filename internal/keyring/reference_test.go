package keyring

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A reader of tokens that was written from RFC 7515, 7519, 8259 and 4648 alone,
// and shares no code with the package or with encoding/json and encoding/base64.
// It is slow and knows one key. What Verify accepts, it must accept.

type refValue struct {
	kind    byte // one of { [ " 0 t f n
	text    string
	members map[string]refValue
	items   []refValue
}

// refAccepts gives the account of a token that the key's holder has signed.
func refAccepts(raw string, key *ecdsa.PublicKey, kid string, now time.Time) (account string, ok bool) {
	parts := regexp.MustCompile(`\A([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})\z`).FindStringSubmatch(raw)
	if parts == nil || len(raw) > 8192 {
		return "", false
	}
	header, ok1 := refJSON(refBase64(parts[1]))
	claims, ok2 := refJSON(refBase64(parts[2]))
	sum := sha256.Sum256([]byte(parts[1] + "." + parts[2]))
	sig := refBase64(parts[3])
	if !ok1 || !ok2 || len(sig) != 64 ||
		!ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return "", false
	}
	return claims.members["sub"].text, refHeader(header, kid) && refClaims(claims, now)
}

func refHeader(h refValue, kid string) bool {
	for _, name := range strings.Fields("crit jku jwk x5u x5c x5t x5t#S256 b64 zip cty") {
		if _, there := h.members[name]; there {
			return false
		}
	}
	typ := h.members["typ"]
	return h.kind == '{' && typ.kind == '"' && (typ.text == "at+jwt" || typ.text == "application/at+jwt") &&
		h.members["alg"].kind == '"' && h.members["alg"].text == "ES256" &&
		h.members["kid"].kind == '"' && h.members["kid"].text == kid
}

func refClaims(c refValue, now time.Time) bool {
	exp, ok1 := refDate(c, "exp")
	iat, ok2 := refDate(c, "iat")
	nbf, ok3 := iat, true
	if _, there := c.members["nbf"]; there {
		nbf, ok3 = refDate(c, "nbf")
	}
	n := now.Unix()
	times := ok1 && ok2 && ok3 && n < exp+30 && iat <= n+30 && nbf <= n+30 && exp > iat && exp-iat <= 86400
	sub := c.members["sub"]
	for _, optional := range []string{"profile", "scope"} {
		if v, there := c.members[optional]; there && v.kind != '"' {
			return false
		}
	}
	return times && c.kind == '{' && sub.kind == '"' && sub.text != "" && len(sub.text) <= 255 &&
		c.members["iss"].kind == '"' && c.members["iss"].text == testIssuer && refAudience(c.members["aud"])
}

func refAudience(aud refValue) bool {
	if aud.kind == '"' {
		return aud.text == testAudience
	}
	found := false
	for _, item := range aud.items {
		if item.kind != '"' {
			return false
		}
		found = found || item.text == testAudience
	}
	return found
}

func refDate(c refValue, name string) (int64, bool) {
	v := c.members[name]
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, v.kind == '0' && err == nil && regexp.MustCompile(`\A[1-9][0-9]*\z`).MatchString(v.text)
}

// refBase64 decodes, giving nil where the text is not canonical.
func refBase64(s string) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var out []byte
	bits, held := 0, uint32(0)
	for _, c := range []byte(s) {
		i := strings.IndexByte(alphabet, c)
		if i < 0 {
			return nil
		}
		held, bits = held<<6|uint32(i), bits+6
		if bits >= 8 {
			bits -= 8
			out = append(out, byte(held>>bits))
			held &= 1<<bits - 1
		}
	}
	if held != 0 || bits >= 6 {
		return nil
	}
	return out
}

// refJSON reads one value and nothing else.
func refJSON(b []byte) (refValue, bool) {
	if len(b) == 0 || !utf8.Valid(b) {
		return refValue{}, false
	}
	p := &refParser{rest: string(b), ok: true}
	v := p.value(0)
	p.space()
	return v, p.ok && p.rest == ""
}

type refParser struct {
	rest string
	ok   bool
}

func (p *refParser) fail() refValue { p.ok = false; return refValue{} }

func (p *refParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take removes a literal from the front, after space.
func (p *refParser) take(literal string) bool {
	p.space()
	rest, found := strings.CutPrefix(p.rest, literal)
	p.rest = rest
	return found
}

var refNumber = regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

func (p *refParser) value(depth int) refValue {
	p.space()
	switch {
	case depth > 100 || p.rest == "":
		return p.fail()
	case p.rest[0] == '"':
		return refValue{kind: '"', text: p.str()}
	case p.take("{"):
		return p.object(depth)
	case p.take("["):
		return p.array(depth)
	case p.take("true"), p.take("false"), p.take("null"):
		return refValue{kind: 'n'}
	}
	n := refNumber.FindString(p.rest)
	if n == "" {
		return p.fail()
	}
	p.rest = p.rest[len(n):]
	return refValue{kind: '0', text: n}
}

func (p *refParser) object(depth int) refValue {
	v := refValue{kind: '{', members: map[string]refValue{}}
	for first := true; p.ok && !p.take("}"); first = false {
		if !first && !p.take(",") {
			return p.fail()
		}
		p.space()
		name := p.str()
		if _, twice := v.members[name]; twice || !p.take(":") {
			return p.fail()
		}
		v.members[name] = p.value(depth + 1)
	}
	return v
}

func (p *refParser) array(depth int) refValue {
	v := refValue{kind: '['}
	for first := true; p.ok && !p.take("]"); first = false {
		if !first && !p.take(",") {
			return p.fail()
		}
		v.items = append(v.items, p.value(depth+1))
	}
	return v
}

var refString = regexp.MustCompile(`\A"((?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)"`)

func (p *refParser) str() string {
	found := refString.FindStringSubmatch(p.rest)
	if found == nil {
		p.ok = false
		return ""
	}
	p.rest = p.rest[len(found[0]):]
	return p.unescape(found[1])
}

func (p *refParser) unescape(s string) string {
	var out strings.Builder
	for s != "" {
		if s[0] != '\\' {
			out.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			out.WriteByte("\"\\/\b\f\n\r\t"[i])
			s = s[2:]
			continue
		}
		r := refHex(s[2:6])
		s = s[6:]
		if r >= 0xd800 && r < 0xdc00 && len(s) >= 6 && s[:2] == `\u` {
			if low := refHex(s[2:6]); low >= 0xdc00 && low < 0xe000 {
				r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
				s = s[6:]
			}
		}
		p.ok = p.ok && (r < 0xd800 || r >= 0xe000) // not half a pair
		out.WriteRune(r)
	}
	return out.String()
}

func refHex(s string) rune {
	n, _ := strconv.ParseUint(s, 16, 32) // four hex digits, as the pattern says
	return rune(n)
}
