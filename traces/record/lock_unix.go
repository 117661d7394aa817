//go:build unix && !solaris && !aix

package record

import (
	"os"
	"syscall"
)

// errLocked says that another process holds the lock.
var errLocked error = syscall.EWOULDBLOCK

func lock(folder *os.File) error {
	return syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
