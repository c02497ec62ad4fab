package core

import "fmt"

// Reserved is what of a file system must stay free: see Limits.FreeDiskBytes.
// Where nothing is set it is a part of the file system, so that a small one can
// be used too, and no more than a large one can spare.
func (l Limits) Reserved(total DiskUse) DiskUse {
	r := DiskUse{Bytes: l.FreeDiskBytes, Files: min(mostReservedFiles, total.Files/reservedPart)}
	if r.Bytes == 0 {
		r.Bytes = min(mostReservedBytes, total.Bytes/reservedPart)
	}
	return r
}

const (
	reservedPart      = 20
	mostReservedBytes = 1 << 30
	mostReservedFiles = 100_000
	// An environment may take one such part of the reserve before it is stopped.
	sharePart = 64
)

// below says whether there is less than of what must stay free.
func (use DiskUse) below(reserve DiskUse) bool {
	return use.Bytes < reserve.Bytes || use.Files < reserve.Files
}

// look is what the disk watch knows when it has counted an environment.
type look struct {
	use    DiskUse
	before DiskUse // at the look before
	first  bool    // there was no look before
	limits boxLimits
	low    *DiskUse // what it may have while the host's disk is low; nil where that is not
	hides  bool     // it goes on having what cannot be counted
}

// judge says why what runs is to be stopped, or nil. Who is over a limit and
// does not grow is left alone: he may be about to delete.
func (l look) judge() *doom {
	if l.first {
		return nil
	}
	bytes, files := l.use.Bytes > l.before.Bytes, l.use.Files > l.before.Files
	switch {
	case bytes && l.use.Bytes > l.limits.DiskBytes:
		return overLimit(ReasonDiskBytes, "bytes on disk", l.use.Bytes, l.limits.DiskBytes)
	case files && l.use.Files > l.limits.Files:
		return overLimit(ReasonFiles, "files and directories", l.use.Files, l.limits.Files)
	case l.low != nil && l.hides:
		return &doom{CommandKilled, ReasonDiskFull, "The host's disk is nearly full and this environment keeps descriptors on their way through a socket, where files that are deleted cannot be counted, so everything in it was ended: try again when its operator has made room."}
	case l.low != nil && (bytes && l.use.Bytes > l.low.Bytes || files && l.use.Files > l.low.Files):
		return &doom{CommandKilled, ReasonDiskFull, "The host's disk is nearly full and this environment was filling it, so everything in it was ended: delete files, or try again when its operator has made room."}
	}
	return nil
}

// isOver says whether a limit is passed, by growth or not.
func (l look) isOver() bool {
	return l.use.Bytes > l.limits.DiskBytes || l.use.Files > l.limits.Files
}

// An environment is far over a limit where it has twice of it, and more above it
// than one command writes before it is stopped: that one must be cleaned up after.
const (
	farBytes = 4 << 30
	farFiles = 200_000
)

func checkFar(limit string, used, allowed, far int64) error {
	if used <= allowed+max(allowed, far) {
		return nil
	}
	return Errorf(CodeQuotaExceeded, "the folder holds %d and may hold %d: it is so far over this limit that only reset_environment or delete_environment frees it", used, allowed).
		With("limit", limit).With("allowed", allowed).With("used", used)
}

func overLimit(limit, what string, used, allowed int64) *doom {
	return &doom{CommandKilled, limit, fmt.Sprintf("The folder held %d %s and may hold %d (limit %s), so everything in the environment was ended: delete files with exec, or call reset_environment.", used, what, allowed, limit)}
}

// uncountable is for a folder whose directories are moved so that nobody can
// count it.
func uncountable(limits boxLimits) *doom {
	return &doom{CommandKilled, ReasonDiskBytes, fmt.Sprintf("The folder may hold %d bytes (limit disk_bytes), which could not be seen to, since directories deep in it were moved all the time or nested without end; so everything in the environment was ended.", limits.DiskBytes)}
}

// stopAll ends everything that runs in a box of an environment, for a reason that
// no call gave.
func (s *Service) stopAll(id string, o *opening, d *doom) {
	p := s.hold(id)
	defer s.letGo(p) // forgets the place where this was all that held it
	s.Log.Warn("everything in an environment is ended", "environment", id, "reason", d.reason, "advice", d.advice)
	o.fate.CompareAndSwap(nil, d)
	if err := o.box.Close(); err != nil {
		s.Log.Error("cannot end the box of an environment", "environment", id, "error", err)
	}
}
