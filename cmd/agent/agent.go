package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
)

var errConfig = errors.New("configuration")

func serve(context.Context, *settings, *slog.Logger, io.Writer) error { return errConfig }
