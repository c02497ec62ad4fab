package core

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// folder is the folder of an environment while a call works in it.
type folder struct {
	FileTree
	service *Service
	env     EnvironmentRecord
	place   *place // held
	passes  int64  // of the place, when the folder was opened
	room    *room
	changes bool   // it is counted as a change
	end     func() // of the use
}

// Close lets go of the folder.
func (f *folder) Close() {
	if err := f.FileTree.Close(); err != nil {
		f.service.Log.Error("cannot close a folder", "environment", f.env.ID, "error", err)
	}
	f.service.letGo(f.place)
	f.end()
	if f.changes {
		f.service.work.leave(aChange)
	}
}

// readFolder opens the folder of an environment, for who only reads. Nothing is held
// up by that: what comes after a reset reads what was there before.
func (s *Service) readFolder(ctx context.Context, c Caller, id string, r Restoring) (*folder, error) {
	p, leave, err := s.enterFor(ctx, aLook, c.Owner, id, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	env, err := s.ownEnvironment(ctx, c.Owner, id)
	if err != nil {
		return nil, err
	}
	return s.openFolder(ctx, env, p)
}

// changeFolder opens it for who changes something, which is to be done within
// during: a reset that comes between makes it fail.
func (s *Service) changeFolder(ctx context.Context, c Caller, id string, r Restoring) (*folder, error) {
	f, err := s.readFolder(ctx, c, id, r)
	if err != nil {
		return nil, err
	}
	if f.changes = s.work.enter(aChange); !f.changes {
		f.Close()
		return nil, stopping()
	}
	f.room = s.disk.roomOf(id)
	return f, nil
}

func (s *Service) openFolder(ctx context.Context, env EnvironmentRecord, p *place) (*folder, error) {
	if env.State != StateActive {
		return nil, busy(env.State)
	}
	if err := s.usable(ctx, env); err != nil {
		return nil, err
	}
	tree, err := s.Workspaces.Files(env.ID, env.HostUID, s.workspacePath(env.ID))
	if err != nil {
		return nil, err
	}
	return &folder{FileTree: tree, service: s, env: env, place: s.hold(p.id), passes: p.passes.Load(), end: s.using(env.ID)}, nil
}

// enter begins the part of a change that a reset must wait for, also where the service
// drains, since the change was begun before. The caller must call leave.
func (f *folder) enter(ctx context.Context) (leave func(), err error) {
	p, leave, err := f.service.enterFor(ctx, aLook, f.env.Owner, f.env.ID, asItIs)
	if err != nil {
		return nil, err
	}
	env, err := f.service.ownEnvironment(ctx, f.env.Owner, f.env.ID)
	switch {
	case err != nil:
	case env.State != StateActive:
		err = busy(env.State)
	case p.passes.Load() != f.passes:
		err = Errorf(CodeEnvironmentBusy, "the environment was reset or archived meanwhile, and nothing was changed: try again").
			With("state", string(StateActive)).With("retry_after_ms", retryAfter.Milliseconds())
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// during does the part of a change that a reset must wait for.
func (f *folder) during(ctx context.Context, do func() error) error {
	leave, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = do()
	f.room.moved.Store(true) // also where it failed: it may have done a part
	return err
}

// checkPath refuses a path that no file has.
func checkPath(field, path string) error {
	if path == "" {
		return invalid(field, "%s is missing: give a path below the workspace", field)
	}
	return checkNUL(field, path)
}

// tagsOf reads ETags as fields and headers have them: separated by commas, in quotes
// or not. Weak ones match nothing.
func tagsOf(text string) []string {
	if text == "" {
		return nil
	}
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" && !strings.HasPrefix(tag, "W/") {
			tags = append(tags, strings.Trim(tag, `"`))
		}
	}
	return tags
}

// conditionOf gives what if_match and if_none_match ask for.
func conditionOf(match, noneMatch string) (Condition, error) {
	if match != "" && noneMatch != "" {
		return Condition{}, invalid("if_none_match", "if_match and if_none_match are both given: give one of them")
	}
	return Condition{Match: tagsOf(match), Absent: noneMatch != ""}, nil
}

func (c Condition) isEmpty() bool { return c.Match == nil && !c.Absent }

// holds says whether content with a tag fulfils it; "" is none there.
func (c Condition) holds(tag string) bool {
	if c.Absent {
		return tag == ""
	}
	if c.Match == nil {
		return true
	}
	for _, match := range c.Match {
		if tag != "" && (match == "*" || match == tag) {
			return true
		}
	}
	return false
}

// mismatch is the failure of a condition on a file that has a tag; "" is no file.
func (c Condition) mismatch(path, tag string) *Error {
	path = shownPath(path)
	switch {
	case c.Absent:
		return Errorf(CodeETagMismatch, "cannot write %q: there is a file already, and if_none_match asks that there is none; leave that out to replace it, or give its etag as if_match", path).
			With("path", path).With("etag", tag)
	case tag == "":
		return Errorf(CodeETagMismatch, "cannot change %q: there is no file, and if_match asks for one; leave that out to make one", path).
			With("path", path).With("etag", nil)
	}
	return Errorf(CodeETagMismatch, "cannot change %q: its content is another than if_match says; read it again, and give the etag that it has now", path).
		With("path", path).With("etag", tag)
}

// mismatch is that of what has no other condition than if_match.
func mismatch(path, tag string) *Error { return Condition{}.mismatch(path, tag) }

// hasCode says whether an error is of a code.
func hasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// modeOf reads permissions in octal.
func modeOf(text string) (*fs.FileMode, error) {
	if text == "" {
		return nil, nil
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 32)
	if err != nil || bits > 0o777 {
		return nil, invalid("mode", "cannot take the mode %.16q: give the permissions in octal, from 0 to 0777; set-uid, set-gid and sticky bits are not set here", text)
	}
	mode := fs.FileMode(bits)
	return &mode, nil
}

func modeText(mode fs.FileMode) string {
	text := strconv.FormatUint(uint64(mode.Perm()), 8)
	return strings.Repeat("0", max(0, 4-len(text))) + text
}

// entryOf shows what stands at a path.
func entryOf(info FileInfo) FileEntry {
	e := FileEntry{
		Path: cmp.Or(info.Path, "."), Type: info.Type, SizeBytes: info.Size, Mode: modeText(info.Mode),
		ModifiedAt: At(info.ModifiedAt), LinkTarget: strings.ToValidUTF8(info.LinkTarget, string(utf8.RuneError)), ETag: info.ETag,
	}
	if !utf8.ValidString(e.Path) {
		e.PathBase64 = base64.StdEncoding.EncodeToString([]byte(e.Path))
		e.Path = shownPath(e.Path)
	}
	return e
}

// shownPath is a path as JSON can carry it.
func shownPath(path string) string { return strings.ToValidUTF8(path, string(utf8.RuneError)) }

func shownPaths(paths []string) []string {
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = shownPath(p)
	}
	return shown
}

const (
	// defaultETagBytes is up to which size files get an ETag by themselves: read and
	// hashed in about half a second.
	defaultETagBytes = 256 << 20
	// etagBound is how long an ETag may be waited for: as any call.
	etagBound = MaxWait
)

// wantsTag says whether a file of a size is to have its ETag shown.
func (s *Service) wantsTag(asked *bool, size int64) bool {
	if asked != nil {
		return *asked
	}
	return size <= cmp.Or(s.Limits.ETagBytes, defaultETagBytes)
}

// tagOf gives the ETag of a file as callers asked for it, or "".
func (s *Service) tagOf(ctx context.Context, f File, asked *bool) (string, error) {
	if !s.wantsTag(asked, f.Info().Size) {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, etagBound)
	defer cancel()
	tag, err := f.ETag(bounded, false)
	return tag, s.leftOut(ctx, err, asked)
}

// leftOut says what the failure to make an ETag means: nobody who did not ask for one
// is told.
func (s *Service) leftOut(ctx context.Context, err error, asked *bool) error {
	late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	switch {
	case !late && !hasCode(err, CodeUnavailable):
		return err
	case asked == nil || !*asked:
		return nil
	case late:
		return unavailable("cannot read the whole file for its ETag within %v: leave etag out", etagBound)
	}
	return err
}

// StatFile says what stands at a path. It fails with `not_found` and the codes of
// paths.
func (s *Service) StatFile(ctx context.Context, c Caller, in StatFileInput) (FileEntry, error) {
	if err := checkPath("path", in.Path); err != nil {
		return FileEntry{}, err
	}
	f, err := s.readFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return FileEntry{}, err
	}
	defer f.Close()
	info, err := f.Stat(ctx, in.Path, false)
	if err != nil {
		return FileEntry{}, err
	}
	info, err = f.tagged(ctx, in.Path, info, in.ETag)
	if err != nil {
		return FileEntry{}, err
	}
	return entryOf(info), nil
}

// tagged gives what stands at a path with the ETag of a file, where that is wanted.
func (f *folder) tagged(ctx context.Context, path string, info FileInfo, asked *bool) (FileInfo, error) {
	if info.Type != TypeFile || info.ETag != "" || !f.service.wantsTag(asked, info.Size) {
		return info, nil
	}
	bounded, cancel := context.WithTimeout(ctx, etagBound)
	defer cancel()
	tagged, err := f.Stat(bounded, path, true)
	if err != nil {
		return info, f.service.leftOut(ctx, err, asked)
	}
	return tagged, nil
}

// searchBound is how long a list or a search goes on before it gives what it has.
const searchBound = 20 * time.Second
