// Package report has the command report of agentctl: one file for people who search a fault, with the
// state of the agent, of its values and of VPP.
//
// Each part of the report is a file of the archive. A part that cannot be read does not prevent the
// others. Secrets of values are hidden, whatever connection the agent answers on.
package report

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/show"
	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// longestProblem is the most that is printed of a reason, in columns. Without VPP, the reason of one part is a
// list of all models of VPP. The archive has it whole.
const longestProblem = 200

// failedReports is the file of the archive with the reasons why parts are missing.
const failedReports = "_failed-reports.txt"

// Command returns the command that writes a report.
func Command(s *session.Session) *cobra.Command {
	var folder string
	var ignore bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Writes an archive with the state of the agent and of VPP",
		Long: "Report writes agentctl-report--TIME.zip, with versions, status, transactions, declared and actual values, and the state, logs and\n" +
			"counters of VPP. Secrets of values are hidden. The archive is written even if parts of it cannot be read; _failed-reports.txt in it\n" +
			"names them, and the exit code is 1 without --ignore-errors.",
		Example: "  agentctl report -o /tmp",
		Args:    session.ExpectArgs(),
	}
	cmd.Flags().StringVarP(&folder, "output-directory", "o", ".", "folder of the archive")
	cmd.Flags().BoolVarP(&ignore, "ignore-errors", "i", false, "end with exit code 0 even if parts cannot be read")
	cmd.RunE = s.WithAgent(func(ctx context.Context, _ []string) error {
		var build wire.Version
		if err := s.Get(ctx, "/info/version", nil, &build); err != nil {
			return err // an archive without anything in it helps nobody
		}
		path, failed, err := write(ctx, &reader{s: s}, folder, time.Now().UTC())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.Out, path); err != nil {
			return err
		}
		for _, text := range failed {
			fmt.Fprintln(s.Err, show.Broken(s.Err, show.Shorten(text, longestProblem), 2))
		}
		if len(failed) > 0 && !ignore {
			return fmt.Errorf("%d of %d parts of the report could not be read; %s in it has the reasons", len(failed), len(parts()), failedReports)
		}
		return nil
	})
	return cmd
}

// write writes the archive, and returns its path and a line for each part that could not be read.
func write(ctx context.Context, r *reader, folder string, now time.Time) (path string, failed []string, err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", nil, err
	}
	path = filepath.Join(folder, "agentctl-report--"+now.Format("2006-01-02--15-04-05")+".zip")
	// Only its owner can read it: it describes the network.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	archive := zip.NewWriter(file)
	var summary strings.Builder
	fmt.Fprintf(&summary, "Report of agentctl, %s\n\n", now.Format(time.RFC3339))
	for _, p := range parts() {
		text, problem := p.read(ctx, r)
		result := fmt.Sprintf("ok, %d bytes", len(text))
		if problem != nil {
			result = "failed: " + show.Remote(problem.Error())
			failed = append(failed, p.file+": "+show.Remote(problem.Error()))
		}
		fmt.Fprintf(&summary, "%s: %s: %s\n", p.file, p.about, result)
		if text == "" && problem != nil {
			continue
		}
		if err := add(archive, now, p.file, text); err != nil {
			return "", nil, err
		}
	}
	if len(failed) > 0 {
		if err := add(archive, now, failedReports, strings.Join(failed, "\n")+"\n"); err != nil {
			return "", nil, err
		}
	}
	if err := add(archive, now, "_report.txt", summary.String()); err != nil {
		return "", nil, err
	}
	return path, failed, archive.Close()
}

// add adds a file to the archive.
func add(archive *zip.Writer, now time.Time, name, text string) error {
	w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: now})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}
