package mappings

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRead(t *testing.T) {
	const smaps = `00400000-0129d000 r-xp 00000000 fe:00 1234                           /usr/bin/agent
Size:              14964 kB
Rss:               14324 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0129d000-02566000 r--p 00e9d000 fe:00 1234                           /usr/bin/agent
Anonymous:            12 kB
02566000-025f6000 rw-p 02166000 fe:00 1235                           /usr/bin/other
Anonymous:           188 kB
025f6000-02642000 rw-p 00000000 00:00 0
Anonymous:             4 kB
7f0000000000-7f0000001000 rw-s 00000000 fe:00 1234                   /usr/bin/agent (deleted)
`
	got, err := read(strings.NewReader(smaps), "fe:00", "1234")
	want := []Mapping{
		{From: 0x400000, To: 0x129d000},
		{From: 0x129d000, To: 0x2566000, Changed: 12 << 10},
		{From: 0x7f0000000000, To: 0x7f0000001000, Writable: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestOwnMapping(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	const pages = 4
	size := pages * os.Getpagesize()
	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	if got, err := Of(info); err != nil || len(got) != 0 {
		t.Errorf("before mapping: %+v, %v", got, err)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	memory[0] = 1
	got, err := Of(info)
	if err != nil || len(got) != 1 || got[0].To-got[0].From != uintptr(size) || !got[0].Writable || got[0].Changed != uint64(os.Getpagesize()) {
		t.Errorf("%+v, %v, want one of %d bytes with one changed page", got, err, size)
	}
}
