package core

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"envapi/core/patch"
)

// maxPatchBytes bounds the files of a patch together, before and after.
const maxPatchBytes = 64 << 20

// ApplyPatch applies a patch to all its files, or to none. It fails with
// `patch_rejected`, `etag_mismatch`, `too_large`, `quota_exceeded` and the codes of
// paths.
func (s *Service) ApplyPatch(ctx context.Context, c Caller, in ApplyPatchInput) (AppliedPatch, error) {
	if err := checkNUL("cwd", in.Cwd); err != nil {
		return AppliedPatch{}, err
	}
	parsed, err := patch.Parse(in.Patch, in.Strip)
	if err != nil {
		return AppliedPatch{}, patchFailure(err)
	}
	f, err := s.changeFolder(ctx, c, in.EnvironmentID, in.Restoring)
	if err != nil {
		return AppliedPatch{}, err
	}
	defer f.Close()
	var done AppliedPatch
	var p patching
	err = untilAlone(func() (err error) {
		p = patching{ctx: ctx, f: f, in: in, parsed: parsed, tags: map[string]string{}, infos: map[string]FileInfo{}, sizes: map[string]int64{}}
		done, err = p.apply()
		return err
	}, func(err error) bool { return p.refused(err) })
	return done, err
}

// patching is one try to apply a patch.
type patching struct {
	ctx    context.Context
	f      *folder
	in     ApplyPatchInput
	parsed *patch.Patch
	tags   map[string]string   // of what was read, by path; "" is no file
	infos  map[string]FileInfo // likewise, where there is a file
	sizes  map[string]int64
	total  int64
}

// refused says whether a mismatch is one with a condition of the caller's.
func (p *patching) refused(err error) bool {
	for path := range p.in.IfMatch {
		tag, read := p.tags[path]
		if !read || !p.condition(path).holds(tag) {
			return true
		}
	}
	return p.ctx.Err() != nil || err == nil
}

func (p *patching) condition(path string) Condition {
	return Condition{Match: tagsOf(p.in.IfMatch[path])}
}

func (p *patching) apply() (AppliedPatch, error) {
	result, err := p.parsed.Apply(p.read, maxPatchBytes)
	if err != nil {
		return AppliedPatch{}, patchFailure(err)
	}
	p.drop(result)
	if err := firstError(once(result.Writes), p.links(result.Sections), p.judge()); err != nil {
		return AppliedPatch{}, err
	}
	done := AppliedPatch{AlreadyApplied: result.Already, DryRun: p.in.DryRun, Files: make([]PatchedFile, len(result.Sections))}
	for i, section := range result.Sections {
		done.Files[i] = PatchedFile{
			Path: p.shown(section.Path), Action: string(section.Kind),
			Added: section.Added, Removed: section.Removed, Note: strings.Join(section.Notes, "; "),
		}
		if section.From != "" {
			done.Files[i].From = p.shown(section.From)
		}
		if section.Already {
			done.Files[i].Action = "unchanged"
		}
	}
	if !p.in.DryRun && len(result.Writes) > 0 {
		if err := p.write(result.Writes); err != nil {
			return AppliedPatch{}, err
		}
	}
	p.tagged(&done, result)
	return done, nil
}

// drop leaves out what is there already, its mode included, which the patch itself
// does not look at.
func (p *patching) drop(result *patch.Result) {
	there := map[string]bool{}
	result.Writes = slices.DeleteFunc(result.Writes, func(w patch.Write) bool {
		info, read := p.infos[w.Path]
		there[w.Path] = read && !w.Gone && w.ModeFrom == "" && contentTag(w.Content) == p.tags[w.Path] &&
			(w.Mode == nil || fs.FileMode(*w.Mode) == info.Mode.Perm())
		return there[w.Path]
	})
	result.Already = true
	for i, section := range result.Sections {
		result.Sections[i].Already = section.Already || there[section.Path] && section.From == ""
		result.Already = result.Already && result.Sections[i].Already
	}
}

// tagged fills in the ETags of the files as they now are, or would be.
func (p *patching) tagged(done *AppliedPatch, result *patch.Result) {
	now := maps.Clone(p.tags)
	for _, w := range result.Writes {
		now[w.Path] = ""
		if !w.Gone {
			now[w.Path] = contentTag(w.Content)
		}
	}
	for i, section := range result.Sections {
		done.Files[i].ETag = now[section.Path]
	}
}

// at is where a path of the patch leads. It is not cleaned: "link/.." is not always
// where it seems.
func (p *patching) at(path string) string {
	if p.in.Cwd == "" || strings.HasPrefix(path, "/") {
		return path
	}
	return strings.TrimRight(p.in.Cwd, "/") + "/" + path
}

func (p *patching) shown(path string) string {
	at := shownPath(p.at(path))
	return strings.TrimPrefix(strings.TrimPrefix(at, "/workspace/"), p.f.service.workspacePath(p.f.env.ID)+"/")
}

// read gives a file to the patch.
func (p *patching) read(path string) (content []byte, there bool, err error) {
	content, info, err := p.f.whole(p.ctx, p.at(path), maxEditBytes)
	if hasCode(err, CodeNotFound) {
		p.tags[path] = ""
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if p.total += int64(len(content)); p.total > maxPatchBytes {
		return nil, false, Errorf(CodeTooLarge, "the files of the patch have more than %d bytes together: apply it in parts", maxPatchBytes).
			With("allowed_bytes", maxPatchBytes)
	}
	p.tags[path], p.infos[path], p.sizes[path] = contentTag(content), info, int64(len(content))
	return content, true, nil
}

// judge refuses where a condition of the caller's does not hold.
func (p *patching) judge() error {
	for _, path := range slices.Sorted(maps.Keys(p.in.IfMatch)) {
		tag, read := p.tags[path]
		if !read {
			return invalid("if_match", "if_match names %.200q, which the patch is not about: give the paths as the patch does, after strip", path)
		}
		if !p.condition(path).holds(tag) {
			return p.condition(path).mismatch(p.at(path), tag)
		}
	}
	return nil
}

// write makes what the patch makes of the files.
func (p *patching) write(writes []patch.Write) (err error) {
	claim := p.f.claim()
	made := false
	defer func() { claim.settle(made) }()
	if err := claim.grow(p.ctx, p.needs(writes)); err != nil {
		return err
	}
	changes := make([]Change, 0, len(writes))
	defer func() {
		for _, change := range changes {
			if change.Put != nil {
				change.Put.Discard()
			}
		}
	}()
	for _, w := range writes {
		change, err := p.change(w)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	_, err = p.f.commit(p.ctx, changes)
	made = err == nil
	return err
}

// needs says how much more the folder will hold.
func (p *patching) needs(writes []patch.Write) DiskUse {
	var use DiskUse
	for _, w := range writes {
		old, there := p.sizes[w.Path]
		switch {
		case w.Gone:
			use = use.minus(DiskUse{blocks(old), 1})
		default:
			use = use.plus(p.f.needs(p.ctx, p.at(w.Path), there, int64(len(w.Content)), old))
		}
	}
	return DiskUse{max(0, use.Bytes), max(0, use.Files)}
}

func (p *patching) change(w patch.Write) (Change, error) {
	change := Change{Path: p.at(w.Path), Parents: true, If: Condition{Absent: true}}
	if tag := p.tags[w.Path]; tag != "" {
		change.If = Condition{Match: []string{tag}}
	}
	if w.Gone {
		change.Literal = true // what became a link meanwhile is refused
		return change, nil
	}
	if w.Mode != nil {
		mode := fs.FileMode(*w.Mode)
		change.Mode = &mode
	}
	if w.ModeFrom != "" {
		change.Like = p.at(w.ModeFrom)
	}
	var err error
	change.Put, err = p.f.Stage(p.ctx, bytes.NewReader(w.Content), -1)
	return change, err
}

// links refuses to take away by a name what a link leads to, which a patch does not
// mean: the link would stay, and lead to nothing.
func (p *patching) links(sections []patch.Section) error {
	for _, section := range sections {
		name := section.Path
		switch section.Kind {
		case patch.Deleted:
		case patch.Renamed:
			name = section.From
		default:
			continue
		}
		info, err := p.f.Stat(p.ctx, p.at(name), false)
		switch {
		case hasCode(err, CodeNotFound):
		case err != nil:
			return err
		case info.Type == TypeSymlink:
			return patchFailure(&patch.RejectedError{File: name, Reason: "it is a link: delete or move the link itself, with delete_file or move_file, or name the file that it leads to"})
		}
	}
	return nil
}

// once refuses a patch that writes one file under two spellings: each would be made of
// what was there before, and the second undo the first.
func once(writes []patch.Write) error {
	spelled := map[string]string{}
	for _, w := range writes {
		clean := path.Clean(w.Path)
		if other, twice := spelled[clean]; twice {
			return patchFailure(&patch.RejectedError{File: w.Path, Reason: "the patch is about it as " + other + " too; spell its path in one way"})
		}
		spelled[clean] = w.Path
	}
	return nil
}

// withoutControls shows control characters for what they are.
func withoutControls(text string) string {
	var out strings.Builder
	for _, c := range strings.ToValidUTF8(text, string(utf8.RuneError)) {
		if unicode.IsControl(c) {
			out.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		} else {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// patchFailure says in the caller's words why a patch was not applied.
func patchFailure(err error) error {
	var rejected *patch.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	e := Errorf(CodePatchRejected, "the patch was not applied, and nothing was changed: %s", withoutControls(rejected.Error()))
	if rejected.File != "" {
		e = e.With("file", shownPath(rejected.File))
	}
	if rejected.Hunk > 0 {
		e = e.With("hunk", rejected.Hunk)
	}
	return e
}
