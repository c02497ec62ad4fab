package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of what is read, far above any real token.
const maxDepth = 16

var (
	errNotJSON   = errors.New("not one JSON value in UTF-8")
	errNotObject = errors.New("not a JSON object")
	errDepth     = errors.New("nested too deeply")
	errDuplicate = errors.New("a member stands twice")
	errCharacter = errors.New("a string holds half a character")
)

// parseObject reads one JSON object as the strictest reader would, so that no
// two readers can differ over what it says: nothing but the object, UTF-8
// without replacement characters, no member twice at any depth.
func parseObject(data []byte) (members, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errNotJSON
	}
	if err := checkValue(json.NewDecoder(bytes.NewReader(data)), 0); err != nil {
		return nil, err
	}
	var m members
	if err := json.Unmarshal(data, &m); err != nil || m == nil {
		return nil, errNotObject
	}
	return m, nil
}

// checkValue walks the next value of valid JSON.
func checkValue(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	t, err := d.Token()
	if err != nil {
		return errNotJSON
	}
	switch t := t.(type) {
	case string:
		return checkString(t)
	case json.Delim:
		return checkNested(d, t == '{', depth+1)
	}
	return nil
}

// checkNested walks an object or array whose opening was read, and its closing.
func checkNested(d *json.Decoder, object bool, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		if object {
			if err := checkName(d, seen); err != nil {
				return err
			}
		}
		if err := checkValue(d, depth); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func checkName(d *json.Decoder, seen map[string]bool) error {
	t, err := d.Token()
	if err != nil {
		return errNotJSON
	}
	name, _ := t.(string) // valid JSON has nothing else here
	if seen[name] {
		return errDuplicate
	}
	seen[name] = true
	return checkString(name)
}

// checkString refuses what the decoder puts in the place of an unpaired
// surrogate: by it two different names would become one.
func checkString(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errCharacter
	}
	return nil
}
