package patch

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // #nosec G505 -- the name of content in git, not a protection
	"encoding/ascii85"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// binary is a change to content that is not text, as git diff --binary writes it.
type binary struct {
	oldID, newID  string // git's names of the contents, perhaps only their beginnings
	forward, back *chunk
}

// chunk is new content, or how it is made of the old.
type chunk struct {
	delta  bool
	size   int64  // of what is packed
	packed []byte // by zlib
}

// readBinary reads what comes after "GIT binary patch".
func (s *source) readBinary(sec *section, file string) error {
	s.at++
	if sec.binary == nil {
		sec.binary = &binary{}
	}
	var err error
	if sec.binary.forward, err = s.chunk(file); err != nil {
		return err
	}
	if sec.binary.forward == nil {
		return s.reject(file, 0, "literal or delta must come after GIT binary patch")
	}
	sec.binary.back, err = s.chunk(file)
	return err
}

// chunk reads a chunk; nil where the next line begins none.
func (s *source) chunk(file string) (*chunk, error) {
	kind, size, _ := strings.Cut(s.peek(0), " ")
	if kind != "literal" && kind != "delta" {
		return nil, nil
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return nil, s.reject(file, 0, "%q is no size", clipped(size))
	}
	c := &chunk{delta: kind == "delta", size: n}
	for s.at++; s.more() && s.peek(0) != ""; s.at++ {
		data, ok := base85(s.peek(0))
		if !ok {
			return nil, s.reject(file, 0, "the binary data is damaged")
		}
		c.packed = append(c.packed, data...)
	}
	for s.more() && s.peek(0) == "" {
		s.at++
	}
	return c, nil
}

const gitAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// toASCII85 maps git's alphabet to the one of the standard library: the
// arithmetic is the same.
var toASCII85 = func() (table [256]byte) {
	for i := range len(gitAlphabet) {
		table[gitAlphabet[i]] = byte('!' + i)
	}
	return table
}()

// base85 decodes a line: a letter for how many bytes it holds, and those.
func base85(text string) ([]byte, bool) {
	n := 0
	switch c := text[0]; {
	case c >= 'A' && c <= 'Z':
		n = int(c-'A') + 1
	case c >= 'a' && c <= 'z':
		n = int(c-'a') + 27
	}
	if n == 0 || len(text)-1 != (n+3)/4*5 {
		return nil, false
	}
	mapped := []byte(text[1:])
	for i, c := range mapped {
		if mapped[i] = toASCII85[c]; mapped[i] == 0 {
			return nil, false
		}
	}
	out := make([]byte, len(mapped)/5*4)
	if _, _, err := ascii85.Decode(out, mapped, true); err != nil {
		return nil, false
	}
	return out[:n], true
}

// apply makes the new content of the old.
func (b *binary) apply(file string, content []byte, limit int64) (outcome, error) {
	if names(b.newID, content) && !names(b.oldID, content) {
		return outcome{content: content, already: true}, nil
	}
	if isWhole(b.oldID) && !names(b.oldID, content) {
		return outcome{}, &RejectedError{File: file, Reason: "the binary patch is for other content (its index line names what it must be)"}
	}
	out, err := b.forward.unpack(content, limit)
	if err != nil {
		return outcome{}, &RejectedError{File: file, Reason: "cannot apply its binary patch: " + err.Error()}
	}
	if isWhole(b.newID) && !names(b.newID, out) {
		return outcome{}, &RejectedError{File: file, Reason: "the binary patch does not make what its index line says"}
	}
	return outcome{content: out, already: bytes.Equal(out, content)}, nil
}

// takenBack makes the old content of the new.
func (b *binary) takenBack(file string, content []byte, limit int64) ([]byte, error) {
	if b.back == nil {
		return nil, &RejectedError{File: file, Reason: "its binary patch has no way back"}
	}
	before, err := b.back.unpack(content, limit)
	if err != nil {
		return nil, err
	}
	again, err := b.forward.unpack(before, limit)
	if err == nil && !bytes.Equal(again, content) {
		err = errors.New("it is not what its binary patch makes")
	}
	return before, err
}

func isWhole(id string) bool { return len(id) == 2*sha1.Size }

// names says whether an id is git's whole name of content.
func names(id string, content []byte) bool {
	if !isWhole(id) {
		return false
	}
	if strings.Trim(id, "0") == "" {
		return len(content) == 0
	}
	sum := sha1.New() // #nosec G401 -- the name of content in git, not a protection
	fmt.Fprintf(sum, "blob %d\x00", len(content))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)) == id
}

// unpack gives the content that a chunk stands for, of limit bytes at most.
func (c *chunk) unpack(content []byte, limit int64) ([]byte, error) {
	if c.size > limit {
		return nil, fmt.Errorf("it has %d bytes, and %d are allowed", c.size, limit)
	}
	unpacked, err := zlib.NewReader(bytes.NewReader(c.packed))
	if err != nil {
		return nil, errors.New("its data is damaged")
	}
	data, err := io.ReadAll(io.LimitReader(unpacked, c.size+1))
	if err != nil || int64(len(data)) != c.size {
		return nil, errors.New("its data is damaged")
	}
	if !c.delta {
		return data, nil
	}
	out := &bounded{room: limit}
	fragment := &gitdiff.BinaryFragment{Method: gitdiff.BinaryPatchDelta, Size: c.size, Data: data}
	if err := gitdiff.NewBinaryApplier(out, bytes.NewReader(content)).ApplyFragment(fragment); err != nil {
		if errors.Is(err, errRoom) {
			return nil, fmt.Errorf("it makes more than the %d bytes that are allowed", limit)
		}
		return nil, errors.New("it does not fit the file")
	}
	return out.Bytes(), nil
}

var errRoom = errors.New("no room")

// bounded is a buffer that takes no more than there is room for.
type bounded struct {
	bytes.Buffer
	room int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.room -= int64(len(p)); b.room < 0 {
		return 0, errRoom
	}
	return b.Buffer.Write(p)
}
