package host

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/protocol"
	"envapi/sandbox/supervisor"
)

func TestNeeds(t *testing.T) {
	at := func(stage string, errno syscall.Errno, message string) error {
		return &supervisor.StageError{Failed: protocol.Failed{Stage: stage, Errno: errno, Message: message}}
	}
	clone := func(errno syscall.Errno) error { return fmt.Errorf("cannot make its process: %w", errno) }
	user, root := machine{}, machine{root: true}
	for name, c := range map[string]struct {
		tier sandbox.Tier
		err  error
		on   machine
		want string
	}{
		"directory as root":            {sandbox.TierDirectory, errors.New("uid 0"), root, needOrdinaryUser},
		"user as a user":               {sandbox.TierUser, errors.New("not root"), user, needRoot},
		"a closed folder above":        {sandbox.TierUser, at("landlock", unix.EACCES, "cannot open"), root, needPassable},
		"the same without Landlock":    {sandbox.TierUser, fmt.Errorf("cannot start: %w", unix.EACCES), root, needPassable},
		"a root without capabilities":  {sandbox.TierUser, at("alone", unix.EPERM, "cannot take uid"), root, needCapabilities},
		"a container with few uids":    {sandbox.TierUser, fmt.Errorf("chown: %w", unix.EINVAL), root, needUIDs},
		"the same with namespaces":     {sandbox.TierNamespace, fmt.Errorf("chown: %w", unix.EINVAL), root, needUIDs},
		"namespaces used up":           {sandbox.TierNamespace, clone(unix.ENOSPC), user, needUserNamespaces},
		"none allowed":                 {sandbox.TierNamespace, clone(unix.ENOSPC), machine{maxUserNamespaces: "0"}, needUserNamespaces},
		"Debian's old setting":         {sandbox.TierNamespace, clone(unix.EPERM), machine{unprivilegedClone: "0"}, needClone},
		"Ubuntu":                       {sandbox.TierNamespace, at("root", unix.EACCES, "cannot make the mounts private"), machine{appArmorRestricted: "1"}, needAppArmor},
		"Ubuntu, at the capabilities":  {sandbox.TierNamespace, fmt.Errorf("cannot take its capabilities: %w", unix.EPERM), machine{appArmorRestricted: "1"}, needAppArmor},
		"Docker":                       {sandbox.TierNamespace, clone(unix.EPERM), machine{root: true, filtered: true}, needProfile},
		"Docker, with namespaces only": {sandbox.TierNamespace, at("root", unix.EPERM, "cannot make the mounts private"), machine{filtered: true}, needProfile},
		"a masked /proc":               {sandbox.TierNamespace, at("root", unix.EPERM, "/proc: cannot make it"), machine{root: true, filtered: true}, needProc},
		"another policy":               {sandbox.TierNamespace, at("root", unix.EACCES, "cannot make the mounts private"), root, needMounts},
		"an old kernel":                {sandbox.TierNamespace, at("root", unix.ENOSYS, "cannot open"), root, needKernel},
		"an empty root file system":    {sandbox.TierNamespace, errors.New("cannot run a program: it ended early"), root, needSystem},
		"no seccomp":                   {sandbox.TierNamespace, at("seccomp", unix.EINVAL, "cannot filter"), root, needSeccomp},
		"no seccomp, as a user":        {sandbox.TierDirectory, at("seccomp", unix.EINVAL, "cannot filter"), user, needSeccomp},
		"what nobody thought of":       {sandbox.TierNamespace, errors.New("odd"), root, needUnknown},
	} {
		if got := needs(c.tier, c.err, c.on); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
