package store

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"

	"envapi/core"
)

// A cursor is the position of the last row of a page. The seq in it counts the
// rows of all callers, so it is encrypted: nobody learns how busy others are.
type cursors struct{ block cipher.Block }

// position is what is encrypted: one block of AES, big endian. What was not
// made here decrypts to something else than the constants in it.
type position struct {
	Version byte
	List    list
	Zero    [6]byte
	Seq     int64
}

const cursorVersion = 1

// list is a kind of list that has cursors.
type list byte

const (
	listOfEnvironments list = 'e'
	listOfCommands     list = 'c'
	listOfShells       list = 's'
)

func newCursors(key []byte) (cursors, error) {
	block, err := aes.NewCipher(key)
	return cursors{block}, err
}

// after gives the cursor of the page that follows seq.
func (c cursors) after(l list, seq int64) string {
	block := make([]byte, aes.BlockSize)
	if _, err := binary.Encode(block, binary.BigEndian, position{Version: cursorVersion, List: l, Seq: seq}); err != nil {
		panic(err) // a position is no block: a mistake of this file
	}
	c.block.Encrypt(block, block)
	return base64.RawURLEncoding.EncodeToString(block)
}

// seq gives the position that cursor names, or `invalid_argument`.
func (c cursors) seq(l list, cursor string) (int64, error) {
	block, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(block) != aes.BlockSize {
		return 0, errCursor()
	}
	c.block.Decrypt(block, block)
	var p position
	_, err = binary.Decode(block, binary.BigEndian, &p)
	if err != nil || p != (position{Version: cursorVersion, List: l, Seq: p.Seq}) {
		return 0, errCursor()
	}
	return p.Seq, nil
}

func errCursor() error {
	return core.Errorf(core.CodeInvalidArgument,
		"the cursor is not one that this list gave: leave it out to start from the first page").
		With("field", "cursor")
}
