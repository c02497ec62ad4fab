package keyring

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// MaxTokenBytes is how long a token may be; a longer one is refused unread.
// Real ones have about 1 KiB.
const MaxTokenBytes = 8 << 10

// A refusal is why a token is not accepted, in words for its bearer. It names
// rules, and members by their names; it tells nothing of this service's
// settings or keys.
type refusal string

func (r refusal) Error() string { return string(r) }

// token is a token in compact form, taken apart. Nothing in it is verified.
type token struct {
	header    members
	claims    members
	signed    []byte // what the signature is over
	signature []byte
}

// parseToken takes apart a token that has exactly the compact form: three parts
// of unpadded, canonical base64url, the first two of them JSON objects. The
// JSON forms of RFC 7515 are thereby refused by shape.
func parseToken(raw string) (token, error) {
	if len(raw) > MaxTokenBytes {
		return token{}, refusal("it is too long")
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return token{}, refusal("it is not a signed token in compact form")
	}
	var decoded [3][]byte
	for i, part := range parts {
		var ok bool
		if decoded[i], ok = decodePart(part); !ok {
			return token{}, refusal("it is not a signed token in compact form")
		}
	}
	t := token{signed: []byte(parts[0] + "." + parts[1]), signature: decoded[2]}
	var err error
	if t.header, err = parseObject(decoded[0]); err != nil {
		return token{}, refusal("its header is not plain JSON")
	}
	if t.claims, err = parseObject(decoded[1]); err != nil {
		return token{}, refusal("its claims are not plain JSON")
	}
	return t, nil
}

// decodePart decodes a part that is not empty and canonical. The decoder skips
// line ends and spare bits, so equality with the encoding of what came out is
// what counts.
func decodePart(part string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || len(b) == 0 || base64.RawURLEncoding.EncodeToString(b) != part {
		return nil, false
	}
	return b, true
}

// members are the members of a JSON object, undecoded, by their exact names.
type members map[string]json.RawMessage

// str gives a member that is a string; not one that is null or of another type.
func (m members) str(name string) (string, bool) {
	raw := m[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}
