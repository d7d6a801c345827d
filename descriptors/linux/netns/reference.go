package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/internal/printable"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

// Validate returns a FieldError for an invalid reference in the given field, or nil.
func Validate(field string, ns *namespace.NetNamespace) error {
	kind, reference := ns.GetType(), ns.GetReference()
	if _, known := namespace.NetNamespace_ReferenceType_name[int32(kind)]; !known {
		return &models.FieldError{Field: field + ".type", Value: int32(kind), Expected: "NSID, PID, FD or MICROSERVICE"}
	}
	if kind == namespace.NetNamespace_UNDEFINED {
		if reference == "" {
			return nil
		}
		return &models.FieldError{Field: field + ".type", Value: kind.String(), Expected: "NSID, PID, FD or MICROSERVICE, as there is a reference"}
	}
	if want := wrong(kind, reference); want != "" {
		return &models.FieldError{Field: field + ".reference", Value: reference, Expected: want}
	}
	return nil
}

// maxReference is the length, in bytes, of the longest path that the kernel takes.
const maxReference = unix.PathMax - 1

// maxName is the length, in bytes, of the longest name of a file: NAME_MAX of linux/limits.h.
const maxName = 255

// wrong returns the allowed form of a reference if this one is invalid, or "".
func wrong(kind namespace.NetNamespace_ReferenceType, reference string) (want string) {
	if reference == "" {
		return "a reference, as there is a type"
	}
	isPath := kind == namespace.NetNamespace_NSID || kind == namespace.NetNamespace_FD
	switch {
	case len(reference) > maxReference:
		return fmt.Sprintf("at most %d bytes", maxReference)
	case isPath && strings.ContainsRune(reference, 0):
		return "a name without zero bytes: it is that of a file"
	}
	switch kind {
	case namespace.NetNamespace_NSID:
		return wrongName(reference)
	case namespace.NetNamespace_PID:
		if !isPID(reference) {
			return "the id of a process"
		}
	case namespace.NetNamespace_FD:
		if !filepath.IsAbs(reference) {
			return "the whole path of a file, such as /proc/1234/ns/net"
		}
	default: // a container may have any label
	}
	return ""
}

// wrongName is wrong for the name of a namespace.
func wrongName(name string) (want string) {
	switch {
	case strings.ContainsRune(name, '/') || name == "." || name == "..":
		return `a name without slash, as in "ip netns add NAME"`
	case len(name) > maxName:
		return fmt.Sprintf("a name of at most %d bytes (it has %d): it is that of a file", maxName, len(name))
	}
	return ""
}

// Text describes a reference in messages.
func Text(ns *namespace.NetNamespace) string {
	switch ns.GetType() {
	case namespace.NetNamespace_NSID:
		return "namespace " + ns.GetReference()
	case namespace.NetNamespace_PID:
		return "namespace of process " + ns.GetReference()
	case namespace.NetNamespace_FD:
		return "namespace at " + ns.GetReference()
	case namespace.NetNamespace_MICROSERVICE:
		return "namespace of microservice " + ns.GetReference()
	default:
		return "the agent's own namespace"
	}
}

// A reference is a reference to a namespace in the one form that it has: all notations that mean the same name, process
// or file have one. Whether two of them lead to one namespace is known only when they are opened.
type reference struct {
	kind namespace.NetNamespace_ReferenceType
	text string
}

// referenceOf returns the same for references that are Equal.
func referenceOf(ns *namespace.NetNamespace) reference {
	r := reference{ns.GetType(), ns.GetReference()}
	switch r.kind {
	case namespace.NetNamespace_PID:
		r.text = decimal(r.text)
	case namespace.NetNamespace_FD:
		r.text = filepath.Clean(r.text)
		dir, name := filepath.Split(r.text)
		pid, isProcess := strings.CutPrefix(strings.TrimSuffix(dir, "/ns/"), "/proc/")
		switch {
		case slices.Contains([]string{usualDir + "/", namesDir() + "/"}, dir):
			return reference{namespace.NetNamespace_NSID, name}
		case isProcess && name == "net" && strings.HasSuffix(dir, "/ns/") && isPID(pid):
			return reference{namespace.NetNamespace_PID, decimal(pid)}
		}
	default: // a name has one notation
	}
	return r
}

// isPID reports whether text is the id of a process.
func isPID(text string) bool {
	pid, err := strconv.ParseUint(text, 10, 31)
	return err == nil && pid != 0
}

// decimal returns the id of a process without leading zeros, as /proc has it.
func decimal(pid string) string { return strings.TrimLeft(pid, "0") }

// Equal reports whether two references have the same meaning; type UNDEFINED equals none.
func Equal(a, b *namespace.NetNamespace) bool { return referenceOf(a) == referenceOf(b) }

// Identity describes a reference as Text does, and is the same for all that are Equal.
func Identity(ns *namespace.NetNamespace) string {
	r := referenceOf(ns)
	return Text(&namespace.NetNamespace{Type: r.kind, Reference: r.text})
}

// path returns the file of a namespace, or "" if it has none.
func (s *Set) path(ns *namespace.NetNamespace) string {
	switch ns.GetType() {
	case namespace.NetNamespace_UNDEFINED:
		return s.opts.Own
	case namespace.NetNamespace_NSID:
		return filepath.Join(s.opts.Dir, ns.GetReference())
	case namespace.NetNamespace_PID:
		return filepath.Join("/proc", decimal(ns.GetReference()), "ns/net")
	case namespace.NetNamespace_FD:
		return ns.GetReference()
	case namespace.NetNamespace_MICROSERVICE:
		if s.opts.Container == nil {
			return ""
		}
		return s.opts.Container(ns.GetReference())
	default:
		return ""
	}
}

// explain turns an error of opening ns into one that names a remedy.
func (s *Set) explain(ns *namespace.NetNamespace, err error) error {
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	unbound := errors.Is(err, kernel.ErrNoNamespace)
	switch {
	case ns.GetType() == namespace.NetNamespace_MICROSERVICE && missing:
		return fmt.Errorf("%s: %w: no running container has that label", Text(ns), ErrNotFound)
	case ns.GetType() == namespace.NetNamespace_NSID && (missing || unbound):
		return fmt.Errorf("%s: %w: %s", Text(ns), ErrNotFound, remedy(ns.GetReference()))
	case missing:
		return fmt.Errorf("%s: %w", Text(ns), ErrNotFound)
	case unbound || nowhere(err):
		return fmt.Errorf("%s: %w: %w", Text(ns), ErrNotFound, err)
	}
	return fmt.Errorf("%s: %w", Text(ns), err)
}

// nowhere reports whether err says that no file can have this path.
func nowhere(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.ELOOP)
}

// remedy returns how to create a namespace. People copy the command, and the name is that of a value.
func remedy(name string) string { return "create it with: ip netns add " + printable.Word(name) }
