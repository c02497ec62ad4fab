package host

import (
	"regexp"
	"strings"
)

// pathShape is an absolute path in a text.
var pathShape = regexp.MustCompile(`(^|[^\w.])/[^\s:;,"'()]+`)

// sameEverywhere are the paths that say nothing of this host.
var sameEverywhere = regexp.MustCompile(`^\W?/(proc|sys|dev)/`)

// withoutPaths gives why a tier cannot be had to everybody: /ready shows it to
// those who have no token. The whole reason is for the log.
func (o Options) withoutPaths(reason string) string {
	for _, path := range []string{o.Private, o.Rootfs, o.InitPath} {
		if path != "" && path != "/" { // one with spaces in it would not be seen whole
			reason = strings.ReplaceAll(reason, path, "/path")
		}
	}
	return pathShape.ReplaceAllStringFunc(reason, func(found string) string {
		if sameEverywhere.MatchString(found) {
			return found
		}
		before, _, _ := strings.Cut(found, "/")
		return before + "(path)"
	})
}
