package daemon

import (
	"fmt"
	"time"
)

const waitLong = time.Minute

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
