package rest

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"envapi/tools"
)

// acceptedForm gives the media type of the form that a request prefers to JSON,
// or "". Only a form that it names is one: a pattern accepts JSON too, and what
// cannot be had is answered with JSON as always.
func acceptedForm(header http.Header, forms []tools.Form) string {
	best, preference := "", 0.0
	for _, entry := range strings.Split(strings.Join(header.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(entry)
		if err != nil {
			continue
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		named := slices.ContainsFunc(forms, func(f tools.Form) bool { return f.MediaType == media })
		switch {
		case q <= preference: // the first of equals
		case named:
			best, preference = media, q
		case media == "application/json":
			best, preference = "", q
		}
	}
	return best
}
