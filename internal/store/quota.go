package store

import "envapi/core"

const deleteOne = "delete one with delete_environment"

// checkQuota fails with `quota_exceeded` where one more would pass the limit
// of that name. things is what is counted and remedy what to do, for people.
func checkQuota(limit, things, remedy string, allowed, used int) error {
	if used < allowed {
		return nil
	}
	return core.Errorf(core.CodeQuotaExceeded, "cannot have more %s (%d of %d): %s first",
		things, used, allowed, remedy).With("limit", limit).With("allowed", allowed).With("used", used)
}
