package supervisor

import "envapi/sandbox/seccomp"

// complete fills in what of the setup follows from the rest, so that no tier can
// forget it.
func (o *Options) complete() error {
	if n := o.Namespaces; n != nil {
		o.Setup.Namespaces, o.Setup.ID, o.Setup.DropGroups = true, n.Inside, n.DropGroups
	}
	filter, err := seccomp.Filter(seccomp.Shares{
		Namespaces: !o.Setup.Namespaces,
		UID:        !o.Setup.Namespaces && o.Setup.ID == 0, // it keeps the service's
	})
	o.Setup.Filter = filter
	return err
}
