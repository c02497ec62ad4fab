package vault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The records of our own that entries of an archive have (PAX, VENDOR.keyword):
//
//	ENVAPI.version   in the global header at the begin
//	ENVAPI.depth     how many levels down the entry is; 0 is the folder itself
//	ENVAPI.link      a number, for what has several names; the first has the content
//	ENVAPI.size      of a file with holes; its content are its data alone
//	ENVAPI.map       where these are: offset and length of each piece, in bytes
//	ENVAPI.more      the entry goes on with the file of the one before it
//	ENVAPI.entries   in the global header at the end: how many there were
//
// SCHILY.xattr.NAME are extended attributes, as other programs have them. So any tar
// can read an archive, save for files with holes, and links to those whose path is cut.
const (
	recordVersion   = "ENVAPI.version"
	recordDepth     = "ENVAPI.depth"
	recordLink      = "ENVAPI.link"
	recordSize      = "ENVAPI.size"
	recordMap       = "ENVAPI.map"
	recordMore      = "ENVAPI.more"
	recordEntries   = "ENVAPI.entries"
	attributePrefix = "SCHILY.xattr."

	version = "1"
	// mostPieces is how many pieces one entry has of a file with holes.
	mostPieces = 2048
)

// A record's name ends at the first "=", so it and "%" are escaped as GNU tar does.
var (
	escaped   = strings.NewReplacer("%", "%25", "=", "%3D")
	unescaped = strings.NewReplacer("%25", "%", "%3D", "=")
)

// piece is a run of bytes of a file that are data.
type piece struct{ at, length int64 }

func formatMap(pieces []piece) string {
	var b []byte
	for _, p := range pieces {
		b = strconv.AppendInt(b, p.at, 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, p.length, 10)
		b = append(b, ' ')
	}
	return strings.TrimSuffix(string(b), " ")
}

// parseMap reads the map of a file of size bytes, whose pieces come after an offset and
// have so many bytes in all.
func parseMap(text string, after, size, all int64) ([]piece, error) {
	fields := strings.Fields(text)
	if len(fields)%2 != 0 || len(fields) > 2*mostPieces {
		return nil, errors.New("the map of a file with holes has an odd number of numbers, or too many")
	}
	pieces := make([]piece, 0, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		at, err := parseNumber(fields[i])
		if err != nil {
			return nil, err
		}
		length, err := parseNumber(fields[i+1])
		if err != nil {
			return nil, err
		}
		if at < after || length > size-at || length == 0 {
			return nil, errors.New("the map of a file with holes is not in order")
		}
		pieces = append(pieces, piece{at, length})
		after, all = at+length, all-length
	}
	if all != 0 {
		return nil, errors.New("a file with holes has other data than its map says")
	}
	return pieces, nil
}

// parseNumber reads a number that is not negative, written in one way only.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return n, nil
}

// attributesIn gives the extended attributes among the records of an entry.
func attributesIn(records map[string]string) ([]attribute, error) {
	var all []attribute
	for key, value := range records {
		name, ok := strings.CutPrefix(key, attributePrefix)
		if !ok {
			continue
		}
		if name = unescaped.Replace(name); !kept(name) || len(name) > 255 || len(value) > valueBytes || strings.IndexByte(name, 0) >= 0 {
			return nil, fmt.Errorf("%.40q is no extended attribute that is kept", name)
		}
		all = append(all, attribute{name, value})
	}
	return all, nil
}
