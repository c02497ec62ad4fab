package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"envapi/core"
	"envapi/internal/config"
	"envapi/internal/datalock"
	"envapi/internal/outputlog"
	"envapi/internal/settings"
	"envapi/internal/store"
	"envapi/internal/workspace"
	"envapi/sandbox"
	"envapi/sandbox/host"
)

// parts are what both programs are made of.
type parts struct {
	service *core.Service
	sandbox sandbox.Host
	store   *store.Store
	lock    *datalock.Lock
	holder  datalock.Holder
	closers []func() error // in the order of opening
}

// openParts opens the parts in order; each may use those before it.
func openParts(ctx context.Context, program config.Program, c Setup) (_ *parts, err error) {
	p := &parts{holder: datalock.Holder{PID: os.Getpid(), Program: string(program), Started: time.Now()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := prepareFolder(c.DataDir); err != nil {
		return nil, err
	}
	if p.lock, err = datalock.Acquire(c.DataDir, p.holder); err != nil {
		return nil, err
	}
	p.closeLater(p.lock.Close)
	if err := p.openService(ctx, c); err != nil {
		return nil, err
	}
	return p, nil
}

// openService opens what the service stands on, and the service.
func (p *parts) openService(ctx context.Context, c Setup) error {
	if err := requireRecords(c.DataDir); err != nil {
		return err
	}
	database, err := store.Open(ctx, filepath.Join(c.DataDir, store.FileName))
	if err != nil {
		return err
	}
	p.store = database
	p.closeLater(database.Close)
	if from, to := database.Upgraded(); from != 0 && from != to {
		c.Log.Info("upgraded the records to the schema of this envapi", "from", from, "to", to)
	}
	if err := p.lockUIDs(ctx, database, c.UIDs()); err != nil {
		return err
	}
	logs, err := outputlog.Open(filepath.Join(c.DataDir, outputlog.Folder), c.MaxOutputLogBytes)
	if err != nil {
		return err
	}
	p.closeLater(logs.Close)
	workspaces, err := workspace.Open(c.DataDir)
	if err != nil {
		return err
	}
	p.closeLater(workspaces.Close)
	private := filepath.Join(c.DataDir, "private")
	if err := prepareFolder(private); err != nil {
		return err
	}
	p.sandbox, err = host.New(ctx, host.Options{
		Tier: c.SandboxTier, MinTier: c.MinSandboxTier,
		Rootfs: c.Rootfs, CommandPath: c.CommandPath,
		Private: private, UIDs: [2]int{c.UIDs().First, c.UIDs().End}, InitPath: c.InitPath, Log: c.Log,
	})
	if err != nil {
		return err
	}
	p.closeLater(p.sandbox.Close)
	lifetimes, err := p.openSettings(c)
	if err != nil {
		return err
	}
	p.service, err = core.New(ctx, core.Config{
		Store: database, Workspaces: workspaces, Logs: logs, Sandbox: p.sandbox,
		Limits: c.Limits(), Retention: c.Retention(), Lifetimes: lifetimes, UIDs: c.UIDs(), Log: c.Log,
	})
	if err != nil {
		return err
	}
	p.closeLater(p.service.Close)
	return nil
}

// openSettings gives what asks settings-api, where there is one.
func (p *parts) openSettings(c Setup) (core.Lifetimes, error) {
	if c.SettingsURL == "" {
		return nil, nil
	}
	client, err := settings.New(settings.Config{
		URL: c.SettingsURL, TokenFile: c.SettingsTokenFile, Store: p.store, Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	p.closeLater(client.Close)
	return client, nil
}

// lockUIDs keeps other services off the host uids of this one's range, and off
// those that its environments have from an earlier one. Only root has any.
func (p *parts) lockUIDs(ctx context.Context, database *store.Store, uids core.UIDRange) error {
	if uids == (core.UIDRange{}) {
		return nil
	}
	locked := []datalock.UIDs{{First: uids.First, End: uids.End}}
	taken, err := database.TakenUIDs(ctx)
	if err != nil {
		return err
	}
	for _, uid := range taken {
		if uid < uids.First || uid >= uids.End {
			locked = append(locked, datalock.UIDs{First: uid, End: uid + 1})
		}
	}
	lock, err := datalock.AcquireUIDs(locked...)
	if err != nil {
		return err
	}
	p.closeLater(lock.Close)
	return nil
}

func (p *parts) closeLater(f func() error) { p.closers = append(p.closers, f) }

// close closes the parts in reverse order.
func (p *parts) close() error {
	var errs []error
	for _, f := range slices.Backward(p.closers) {
		errs = append(errs, f())
	}
	p.closers = nil
	return errors.Join(errs...)
}
