package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// find fills in the hierarchies, and for what is not to be had, why.
func (p *Parent) find() {
	for _, c := range controls {
		p.missing[c] = "no cgroup hierarchy offers it to the service"
	}
	mounts, err := readMounts(p.system.mountinfo)
	own, err2 := readOwn(p.system.cgroup)
	if err = errors.Join(err, err2); err != nil {
		p.miss(controls, err)
		return
	}
	wanted := controls
	for _, m := range mounts {
		if m.version != 2 {
			continue
		}
		held, err := p.takeV2(m, own[""])
		if err != nil {
			p.options.Log.Info("cgroup v2 is not used", "cause", err)
			p.miss(wanted, err)
		}
		wanted = without(wanted, held)
	}
	for _, m := range mounts {
		offered := without(wanted, without(wanted, m.controllers))
		if m.version != 1 || len(offered) == 0 {
			continue
		}
		if err := p.takeV1(m, own[string(offered[0])], offered); err != nil {
			p.options.Log.Info("a cgroup v1 hierarchy is not used", "controllers", offered, "cause", err)
			p.miss(offered, err)
			continue
		}
		wanted = without(wanted, offered)
	}
}

// miss notes why controls are not to be had, in words for everybody: without a
// path of the host.
func (p *Parent) miss(missing []Control, why error) {
	text := why.Error()
	var errno syscall.Errno
	if errors.As(why, &errno) {
		text = "its cgroup is not the service's to change: " + errno.Error()
	}
	for _, c := range missing {
		p.missing[c] = text
	}
}

func without(all, some []Control) []Control {
	return slices.DeleteFunc(slices.Clone(all), func(c Control) bool { return slices.Contains(some, c) })
}

// mount is a cgroup file system.
type mount struct {
	version     int
	point, root string // where it is, and the folder of its hierarchy that is there
	controllers []Control
}

// readMounts reads mountinfo (proc_pid_mountinfo(5)).
func readMounts(path string) ([]mount, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the cgroups: %w", err)
	}
	var mounts []mount
	for line := range strings.Lines(string(content)) {
		before, after, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		m := mount{root: unescape(place[3]), point: unescape(place[4])}
		switch kind[0] {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			m.version = 1
			for option := range strings.SplitSeq(kind[2], ",") {
				m.controllers = append(m.controllers, Control(option))
			}
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// unescape undoes what mountinfo does to spaces and the like.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// readOwn gives the group of this process by controller; that of version 2 is
// under "" (cgroups(7)).
func readOwn(path string) (map[string]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the service's own cgroup: %w", err)
	}
	own := map[string]string{}
	for line := range strings.Lines(string(content)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own, nil
}

// folder gives where a group of the mount's hierarchy is. What the mount does
// not show, a container may not have.
func (m mount) folder(group string) (string, error) {
	below, err := filepath.Rel(m.root, group)
	if err != nil || below == ".." || strings.HasPrefix(below, "../") {
		return "", errors.New("the service's own cgroup is outside of what is mounted here")
	}
	return filepath.Join(m.point, below), nil
}

// takeV1 makes the service's folder in a hierarchy of version 1.
func (p *Parent) takeV1(m mount, own string, offered []Control) error {
	if slices.Contains(m.controllers, "cpuset") { // a new group there may use no cpu
		return errors.New("its hierarchy has cpuset too, which is not supported")
	}
	folder, err := m.folder(own)
	if err != nil {
		return err
	}
	h := &hierarchy{system: p.system, version: 1, dir: filepath.Join(folder, p.options.Name), controls: offered}
	if err := p.system.mkdir(h.dir); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := h.beginV1(); err != nil {
		return errors.Join(err, p.system.rmdir(h.dir))
	}
	p.hierarchies = append(p.hierarchies, h)
	return nil
}

// serviceLeaf is where the service goes in version 2: a group with groups below
// it must have no processes of its own.
const serviceLeaf = "envapi-service"

// takeV2 makes the service's folder in version 2, and says which controls that
// gives.
func (p *Parent) takeV2(m mount, own string) ([]Control, error) {
	if filepath.Base(own) == serviceLeaf { // it was started there
		own = filepath.Dir(own)
	}
	folder, err := m.folder(own)
	if err != nil {
		return nil, err
	}
	h := &hierarchy{system: p.system, version: 2, dir: filepath.Join(folder, p.options.Name)}
	if h.controls, err = offeredV2(folder); err != nil {
		return nil, err
	}
	if err := p.system.mkdir(h.dir); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	err = h.enable(folder)
	if errors.Is(err, unix.EBUSY) {
		err = errors.Join(p.moveService(folder), h.enable(folder))
	}
	if err == nil {
		err = h.enable(h.dir)
	}
	if err != nil {
		return nil, errors.Join(err, p.system.rmdir(h.dir))
	}
	h.controls = append(h.controls, CPUTime)
	p.hierarchies = append(p.hierarchies, h)
	return h.controls, nil
}

// offeredV2 gives what a group of version 2 may pass on.
func offeredV2(folder string) ([]Control, error) {
	content, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	var offered []Control
	for _, name := range strings.Fields(string(content)) {
		if c := Control(name); c == Memory || c == Processes || c == CPU {
			offered = append(offered, c)
		}
	}
	if len(offered) == 0 {
		return nil, errors.New("cgroup v2 offers none of its controllers here, and there is no v1 hierarchy of it")
	}
	return offered, nil
}

// moveService moves this process, with all its threads, to a leaf.
func (p *Parent) moveService(folder string) error {
	leaf := filepath.Join(folder, serviceLeaf)
	if err := p.system.mkdir(leaf); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return p.system.set(leaf, setting{file: "cgroup.procs", value: "0"})
}
