package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/outputlog"
	"envapi/internal/plain"
	"envapi/internal/store"
	"envapi/internal/workspace"
	"envapi/internal/workspace/vault"
)

const (
	// tries is how often an environment is copied that changes its state meanwhile, and
	// fewTries one that cannot be read for the while, of which each may take long. The
	// pause between two of them grows, to a multiple.
	tries, fewTries = 20, 3
	tryPause        = 20 * time.Millisecond
	mostPauses      = 5
)

var (
	// errMissing says that an environment was neither folder nor archive at a moment.
	errMissing = errors.New("neither its folder nor its archive is there")
	// errPassing says that it was another folder after it was copied.
	errPassing = errors.New("it was archived, restored or reset again and again while it was copied")
	// errUnlike says that an archive is not the one that was recorded.
	errUnlike = errors.New("its archive has another size than was recorded")
)

// maker copies the environments.
type maker struct {
	request *Request
	records *store.Backup
	result  Result
	sizes   map[string]core.DiskUse // of folders, when they were counted
	space   *space

	path              string   // of the backup
	live, archives    *os.File // of the service
	madeLive, madeOld *os.File // the same of the backup
}

func newMaker(q *Request, p *partial, records *store.Backup, s *space) (_ *maker, err error) {
	m := &maker{
		request: q, records: records, space: s, path: p.path, sizes: map[string]core.DiskUse{}, result: Result{Left: []Left{}},
	}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.live, m.madeLive, err = m.pair(workspace.LiveFolder, 0o711); err != nil {
		return nil, err
	}
	if m.archives, m.madeOld, err = m.pair(workspace.ArchiveFolder, 0o700); err != nil {
		return nil, err
	}
	return m, os.Mkdir(filepath.Join(p.path, outputlog.Folder), 0o700)
}

// pair opens a folder of the service, and makes the one that stands for it in the backup.
// What it has opened it gives also where it fails.
func (m *maker) pair(name string, mode os.FileMode) (source, made *os.File, err error) {
	path := filepath.Join(m.path, name)
	if made, err = makeFolder(path, mode); err != nil {
		return nil, nil, err
	}
	source, err = os.OpenFile(filepath.Join(m.request.Data, name), unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		source, err = os.Open(path) // an older service had none, so there is nothing
	}
	if err != nil {
		return nil, made, fmt.Errorf("cannot open the data folder: %w", err)
	}
	return source, made, nil
}

// makeFolder makes a folder and opens it.
func makeFolder(path string, mode os.FileMode) (*os.File, error) {
	if err := os.Mkdir(path, mode); err != nil {
		return nil, err
	}
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := dir.Chmod(mode); err != nil { // the umask may have cut it
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func (m *maker) close() {
	for _, f := range []*os.File{m.live, m.archives, m.madeLive, m.madeOld} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// copyAll copies all environments that the copy of the store has.
func (m *maker) copyAll(ctx context.Context) error {
	all, err := m.records.Environments(ctx)
	if err != nil {
		return err
	}
	need, err := m.count(ctx, all)
	if err != nil {
		return err
	}
	if err := m.space.fits(need); err != nil {
		return err
	}
	for _, env := range all {
		if err := m.environment(ctx, env); err != nil {
			return err
		}
	}
	return nil
}

// count gives about what the copies take. What cannot be counted is found out later.
func (m *maker) count(ctx context.Context, all []core.EnvironmentRecord) (need core.DiskUse, err error) {
	for _, env := range all {
		use, err := workspace.Count(ctx, m.live, env.ID)
		if ctx.Err() != nil {
			return need, ctx.Err()
		}
		if err == nil {
			m.sizes[env.ID] = use
		} else if env.Archive != nil {
			use = core.DiskUse{Bytes: env.Archive.Bytes, Files: 1}
		}
		need.Bytes += use.Bytes
		need.Files += use.Files
	}
	if m.space.shares {
		return core.DiskUse{Files: need.Files}, nil
	}
	logs, err := outputlog.Size(filepath.Join(m.request.Data, outputlog.Folder))
	need.Bytes += logs
	return need, err
}

// environment copies one, and brings its record into line with what was copied.
func (m *maker) environment(ctx context.Context, env core.EnvironmentRecord) error {
	switch {
	case env.State == core.StateDeleting:
		return m.records.Drop(ctx, env.ID, true)
	case env.State == core.StateRestoring && env.Archive == nil: // a fork that was not made
		return m.records.Drop(ctx, env.ID, false)
	}
	archive, err := m.files(ctx, env)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *core.Error
	if errors.As(err, &e) && e.Code == core.CodeDiskFull {
		return err
	}
	if err := m.logs(ctx, env.ID); err != nil {
		return err
	}
	now, there, nowErr := m.records.Now(ctx, env.ID)
	if nowErr != nil {
		return nowErr
	}
	if !there || now.State == core.StateDeleting {
		return errors.Join(m.remove(ctx, env.ID), m.records.Drop(ctx, env.ID, true))
	}
	if passing(err) && now.State == core.StateResetting {
		err = m.empty(env) // which takes long on a full disk
	}
	return m.conclude(ctx, env, archive, err)
}

// conclude counts an environment as copied, or names it with what it could not be copied
// for.
func (m *maker) conclude(ctx context.Context, env core.EnvironmentRecord, archive *core.Archive, err error) error {
	m.result.Environments++
	if err != nil {
		m.result.Left = append(m.result.Left, Left{env.ID, plain.Text(err.Error())})
		if passing(err) || errors.Is(err, errUnlike) || env.State == core.StateArchived {
			return nil // the service has no more of it, and its record says so
		}
	}
	if archive != nil {
		m.result.Archived++
	}
	return m.settle(ctx, env, archive)
}

// settle writes down what was copied, where that is not what the record says.
func (m *maker) settle(ctx context.Context, env core.EnvironmentRecord, archive *core.Archive) error {
	same := env.State == core.StateActive && archive == nil && env.Archive == nil ||
		env.State == core.StateArchived && archive != nil && env.Archive != nil && *archive == *env.Archive
	if same {
		return nil
	}
	return m.records.Settle(ctx, env.ID, archive)
}

// files copies the folder of an environment, or its archive, of which it then says what
// it is.
func (m *maker) files(ctx context.Context, env core.EnvironmentRecord) (archive *core.Archive, err error) {
	for try, failures := 0, 0; try < tries && failures < fewTries; try++ {
		if try > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Duration(min(try, mostPauses)) * tryPause):
			}
		}
		// The folder first: where there is one it is whole, also while it is packed or
		// was just laid out.
		var there bool
		if there, err = m.folder(ctx, env); !there {
			archive, err = m.archive(ctx, env)
			if errors.Is(err, fs.ErrNotExist) {
				err = errMissing
			}
		}
		if ctx.Err() != nil || !mayPass(err) || m.deleted(ctx, env.ID) {
			return archive, err
		}
		if !passing(err) {
			failures++
		}
	}
	return nil, err
}

// mayPass says whether what an environment could not be copied for may be over soon.
func mayPass(err error) bool {
	var e *core.Error
	return passing(err) || errors.Is(err, errUnlike) || errors.Is(err, vault.ErrChanged) ||
		errors.As(err, &e) && e.Code == core.CodeUnavailable
}

// passing says whether an environment was in no lasting form when it was looked at.
func passing(err error) bool { return errors.Is(err, errMissing) || errors.Is(err, errPassing) }

// deleted says whether an environment is gone by now, or about to be.
func (m *maker) deleted(ctx context.Context, id string) bool {
	now, there, err := m.records.Now(ctx, id)
	return err == nil && (!there || now.State == core.StateDeleting)
}

// logs copies the output of what the copy of the store has.
func (m *maker) logs(ctx context.Context, id string) error {
	n, err := outputlog.Copy(ctx, filepath.Join(m.request.Data, outputlog.Folder), filepath.Join(m.path, outputlog.Folder), id,
		func(ran string) (bool, error) { return m.records.HasOutput(ctx, id, ran) })
	m.result.Bytes += n
	return err
}

// remove takes away what was copied of an environment.
func (m *maker) remove(ctx context.Context, id string) error {
	return errors.Join(
		workspace.RemoveFolder(ctx, m.madeLive, id),
		gone(unix.Unlinkat(int(m.madeOld.Fd()), workspace.ArchiveName(id), 0)),
		os.RemoveAll(filepath.Join(m.path, outputlog.Folder, id)),
	)
}
