package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// The system of these examples stores things: disks come and go by themselves,
// volumes are made on them, and mounts need volumes. Any message will do; here
// all of them are one string.
type (
	text    = *wrapperspb.StringValue
	nothing = struct{} // there is no metadata
)

// printing is a descriptor of the keys with the prefix, whose verbs print.
func printing(name, prefix string) scheduler.Descriptor[text, nothing] {
	return scheduler.Descriptor[text, nothing]{
		Name:       name,
		Prefix:     prefix,
		Connection: "storage",
		Create: func(_ context.Context, key string, v text) (nothing, error) {
			fmt.Println("create", key, v.Value)
			return nothing{}, nil
		},
		Update: func(_ context.Context, key string, old, new text, _ nothing) (nothing, error) {
			fmt.Println("update", key, old.Value, "->", new.Value)
			return nothing{}, nil
		},
		Delete: func(_ context.Context, key string, _ text, _ nothing) error {
			fmt.Println("delete", key)
			return nil
		},
	}
}

// volumes and mounts: a mount needs the volume that it names.
func volumes() scheduler.Descriptor[text, nothing] { return printing("volume", "volume/") }

func mounts() scheduler.Descriptor[text, nothing] {
	d := printing("mount", "mount/")
	d.Dependencies = func(_ string, v text) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "volume-exists", Key: "volume/" + v.Value}}
	}
	return d
}

// begin runs s until stop is called.
func running(s *scheduler.Scheduler) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return ctx, func() {
		cancel()
		if err := <-ended; err != nil {
			panic(err)
		}
	}
}

// storage is a scheduler that has the descriptors. One verb at a time makes the
// examples print in the same order each time.
func storage(ds ...scheduler.Descriptor[text, nothing]) *scheduler.Scheduler {
	s := scheduler.New(scheduler.Options{Concurrency: 1})
	for _, d := range ds {
		if _, err := scheduler.Register(s, d); err != nil {
			panic(err)
		}
	}
	return s
}

// want is the intent that text stands under key.
func want(key, value string) scheduler.Change { return scheduler.Want(key, wrapperspb.String(value)) }

func commit(ctx context.Context, s *scheduler.Scheduler, changes ...scheduler.Change) {
	if _, err := s.Commit(ctx, scheduler.Txn{Changes: changes}); err != nil {
		fmt.Println(err)
	}
}

func state(s *scheduler.Scheduler, key string) {
	st, _ := s.Status(key)
	fmt.Println(key, st.State, st.Details)
}

// Values come in the order they need, in whichever order they are asked for.
func Example() {
	s := scheduler.New(scheduler.Options{})
	if _, err := scheduler.Register(s, volumes()); err != nil {
		panic(err)
	}
	if _, err := scheduler.Register(s, mounts()); err != nil {
		panic(err)
	}
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("mount/home", "v1"))
	state(s, "mount/home")
	commit(ctx, s, want("volume/v1", "10G"))
	commit(ctx, s, scheduler.Unwant("volume/v1"))
	state(s, "mount/home")
	// Output:
	// mount/home PENDING [volume-exists]
	// create volume/v1 10G
	// create mount/home v1
	// delete mount/home
	// delete volume/v1
	// mount/home PENDING [volume-exists]
}

// A mount that moves to another volume stays up: it is updated after the new
// volume stands and before the old one leaves.
func ExampleScheduler_Commit() {
	s := storage(volumes(), mounts())
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"), want("mount/home", "v1"))
	commit(ctx, s, scheduler.Unwant("volume/v1"), want("volume/v2", "20G"), want("mount/home", "v2"))
	// Output:
	// create volume/v1 10G
	// create mount/home v1
	// create volume/v2 20G
	// update mount/home v1 -> v2
	// delete volume/v1
}

// Disks are nobody's to create: a descriptor without verbs only takes notice of
// what Observe tells.
func ExampleScheduler_Observe() {
	disks := scheduler.Descriptor[text, nothing]{Name: "disk", Prefix: "disk/"}
	onDisk := volumes()
	onDisk.Dependencies = func(string, text) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "disk-present", Key: "disk/sda"}}
	}
	s := storage(disks, onDisk)
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	state(s, "volume/v1")
	s.Observe(scheduler.Observed{Key: "disk/sda", Value: wrapperspb.String("1T")})
	if err := wait.For(ctx, s, "volume/v1"); err != nil {
		panic(err)
	}
	state(s, "volume/v1")
	// Output:
	// volume/v1 PENDING [disk-present]
	// create volume/v1 10G
	// volume/v1 CONFIGURED []
}

// A dependency on any key under a prefix is met by one of them, and goes on being
// met by another when that one leaves.
func Example_anyOf() {
	backup := printing("backup", "backup/")
	backup.Dependencies = func(string, text) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "some-volume", Prefixes: []string{"volume/"}}}
	}
	s := storage(volumes(), backup)
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("backup/all", "daily"))
	state(s, "backup/all")
	commit(ctx, s, want("volume/v1", "10G"), want("volume/v2", "20G"))
	commit(ctx, s, scheduler.Unwant("volume/v1"))
	commit(ctx, s, scheduler.Unwant("volume/v2"))
	// Output:
	// backup/all PENDING [some-volume]
	// create volume/v1 10G
	// create volume/v2 20G
	// create backup/all daily
	// delete volume/v1
	// delete backup/all
	// delete volume/v2
}

// What is derived from a value comes after it and goes before it, has
// dependencies of its own, and keeps nothing else from standing. A derived key
// that no descriptor has is a property: others can depend on it.
func Example_derived() {
	encrypted := volumes()
	encrypted.Derived = func(key string, v text) []scheduler.KeyValue {
		return []scheduler.KeyValue{
			{Key: "cipher/" + key, Value: v}, // a part with verbs
			{Key: "safe/" + key, Value: v},   // a property
		}
	}
	ciphers := printing("cipher", "cipher/")
	ciphers.Dependencies = func(string, text) []scheduler.Dependency {
		return []scheduler.Dependency{{Label: "key-loaded", Key: "key/master"}}
	}
	s := storage(encrypted, ciphers, printing("key", "key/"))
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	for _, st := range s.Statuses("") {
		fmt.Println(st.Key, st.State, st.Details)
	}
	commit(ctx, s, want("key/master", "secret"))
	commit(ctx, s, scheduler.Unwant("volume/v1"))
	// Output:
	// create volume/v1 10G
	// cipher/volume/v1 PENDING [key-loaded]
	// safe/volume/v1 CONFIGURED []
	// volume/v1 CONFIGURED []
	// create key/master secret
	// create cipher/volume/v1 10G
	// delete cipher/volume/v1
	// delete volume/v1
}

// What one value alone can have is claimed: that which has it keeps it, and the others say
// who, and come when it is free.
func Example_claims() {
	disks := volumes()
	disks.Claims = func(_ string, v text) []scheduler.Claim {
		return []scheduler.Claim{{Resource: "disk/" + v.Value, Field: "value", Value: v.Value, Want: "a disk of its own"}}
	}
	s := storage(disks)
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v2", "sda"))
	commit(ctx, s, want("volume/v1", "sda"))
	state(s, "volume/v1")
	commit(ctx, s, want("volume/v2", "sdb"))
	// Output:
	// create volume/v2 sda
	// KeyErrors: [volume/v1 (VALIDATE): invalid value: value is "sda"; expected a disk of its own (see volume/v2)]
	// volume/v1 INVALID [value]
	// update volume/v2 sda -> sdb
	// create volume/v1 sda
}

// Plan says what Commit would do, by the same loop, and does nothing.
func ExampleScheduler_Plan() {
	s := storage(volumes(), mounts())
	ctx, stop := running(s)
	defer stop()

	plan, err := s.Plan(ctx, scheduler.Txn{Changes: []scheduler.Change{want("mount/home", "v1"), want("volume/v1", "10G")}})
	if err != nil {
		panic(err)
	}
	for _, op := range plan.Planned.All() {
		fmt.Println(op.Verb, op.Key, op.NewState)
	}
	fmt.Println(len(s.Statuses("")), "values")
	// Output:
	// CREATE volume/v1 CONFIGURED
	// CREATE mount/home CONFIGURED
	// 0 values
}

// Validate names what is wrong with any of many values, without a southbound.
func ExampleScheduler_Validate() {
	sized := volumes()
	sized.Validate = func(_ string, v text) error {
		if !strings.HasSuffix(v.Value, "G") {
			return &models.FieldError{Field: "value", Value: v.Value, Expected: `a size such as "10G"`}
		}
		return nil
	}
	s := storage(sized)

	fmt.Println(s.Validate(
		scheduler.KeyValue{Key: "volume/v1", Value: wrapperspb.String("10")},
		scheduler.KeyValue{Key: "volume/v2", Value: wrapperspb.String("10G")},
		scheduler.KeyValue{Key: "valume/v3", Value: wrapperspb.String("10G")},
	))
	// Output:
	// volume/v1: invalid value: value is "10"; expected a size such as "10G"
	// valume/v3: no descriptor implements this key
}

// What Create learns is there for the other verbs, and for other descriptors,
// by the name of the value or by anything in it.
func ExampleIndex() {
	s := scheduler.New(scheduler.Options{})
	devices, err := scheduler.Register(s, scheduler.Descriptor[text, string]{
		Name: "volume", Prefix: "volume/",
		Create: func(context.Context, string, text) (string, error) { return "/dev/dm-7", nil },
		Delete: func(_ context.Context, key string, _ text, device string) error {
			fmt.Println("delete", key, "at", device)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	byDevice := devices.By(func(device string) []string { return []string{device} })
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	device, ok := devices.Get("v1")
	fmt.Println(device, ok, byDevice("/dev/dm-7"))
	commit(ctx, s, scheduler.Unwant("volume/v1"))
	_, ok = devices.Get("v1")
	fmt.Println(ok)
	// Output:
	// /dev/dm-7 true [v1]
	// delete volume/v1 at /dev/dm-7
	// false
}

// While the connection is lost, its values wait with that reason and no verb is called.
func ExampleConnection() {
	s := scheduler.New(scheduler.Options{})
	server, err := s.Connection("storage") // before its descriptors are registered
	if err != nil {
		panic(err)
	}
	if _, err := scheduler.Register(s, volumes()); err != nil {
		panic(err)
	}
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	state(s, "volume/v1")
	server.Ready()
	if err := wait.For(ctx, s, "volume/v1"); err != nil {
		panic(err)
	}
	state(s, "volume/v1")
	// Output:
	// volume/v1 PENDING [storage: not connected yet]
	// create volume/v1 10G
	// volume/v1 CONFIGURED []
}

// Replace declares the complete desired state: other values are removed.
func ExampleTxn_replace() {
	s := storage(volumes())
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"), want("volume/v2", "20G"))
	_, err := s.Commit(ctx, scheduler.Txn{Replace: true, Changes: []scheduler.Change{want("volume/v2", "20G")}})
	fmt.Println(err)
	// Output:
	// create volume/v1 10G
	// create volume/v2 20G
	// delete volume/v1
	// <nil>
}

// Revert undoes the whole transaction if one of its verbs fails.
func ExampleTxn_revert() {
	broken := mounts()
	broken.Create = func(context.Context, string, text) (nothing, error) { return nothing{}, errors.New("no such folder") }
	s := storage(volumes(), broken)
	ctx, stop := running(s)
	defer stop()

	_, err := s.Commit(ctx, scheduler.Txn{Revert: true, Changes: []scheduler.Change{want("volume/v1", "10G"), want("mount/home", "v1")}})
	fmt.Println(err)
	_, exists := s.Status("volume/v1")
	fmt.Println("volume/v1 exists:", exists)
	// Output:
	// create volume/v1 10G
	// delete volume/v1
	// KeyErrors: [mount/home (CREATE): no such folder]
	// volume/v1 exists: false
}

// Retrieve reports the actual state. A resync with Refresh and Replace repairs it: here a
// volume has the wrong size, and another one is not desired.
func ExampleDescriptor_retrieve() {
	actual := map[string]string{"volume/v1": "5G", "volume/v9": "1G"}
	described := volumes()
	described.Retrieve = func(context.Context, []scheduler.Desired[text]) scheduler.Retrieved[text, nothing] {
		return func(yield func(scheduler.Found[text, nothing], error) bool) {
			for key, size := range actual {
				if !yield(scheduler.Found[text, nothing]{Key: key, Value: wrapperspb.String(size)}, nil) {
					return
				}
			}
		}
	}
	s := storage(described)
	ctx, stop := running(s)
	defer stop()

	_, err := s.Commit(ctx, scheduler.Txn{Refresh: true, Replace: true, Changes: []scheduler.Change{want("volume/v1", "10G")}})
	fmt.Println(err)
	// Unordered output:
	// delete volume/v9
	// update volume/v1 5G -> 10G
	// <nil>
}

// Wait returns when all keys are applied, or as soon as one of them cannot be.
func Example_wait() {
	s := storage(volumes(), mounts())
	ctx, stop := running(s)
	defer stop()

	if err := s.Submit(ctx, scheduler.Txn{Changes: []scheduler.Change{want("volume/v1", "10G"), want("mount/home", "v1")}}); err != nil {
		panic(err)
	}
	fmt.Println(wait.For(ctx, s, "volume/v1", "mount/home"))
	fmt.Println(wait.For(ctx, s, "volume/v2"))
	// Output:
	// create volume/v1 10G
	// create mount/home v1
	// <nil>
	// volume/v2 does not exist: it is neither declared nor found
}

// A watch begins with the present statuses. Then it yields changes: the newest status of each
// value.
func ExampleScheduler_Watch() {
	s := storage(volumes(), mounts())
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("mount/home", "v1"))
	watch := s.Watch("mount/")
	defer watch.Close()
	show := func() {
		news, err := watch.Next(ctx)
		if err != nil {
			panic(err)
		}
		for _, st := range news {
			fmt.Println("watch:", st.Key, st.State, st.Details)
		}
	}
	show()
	commit(ctx, s, want("volume/v1", "10G"))
	show()
	commit(ctx, s, scheduler.Unwant("mount/home"))
	show()
	// Output:
	// watch: mount/home PENDING [volume-exists]
	// create volume/v1 10G
	// create mount/home v1
	// watch: mount/home CONFIGURED []
	// delete mount/home
	// watch: mount/home REMOVED []
}

// A watch of an index begins with the metadata of the existing values.
func ExampleIndex_Watch() {
	s := scheduler.New(scheduler.Options{})
	devices, err := scheduler.Register(s, scheduler.Descriptor[text, string]{
		Name: "volume", Prefix: "volume/",
		Create: func(_ context.Context, key string, _ text) (string, error) { return "/dev/" + key, nil },
		Delete: func(context.Context, string, text, string) error { return nil },
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	watch := devices.Watch()
	defer watch.Close()
	fmt.Println(watch.Take())
	commit(ctx, s, scheduler.Unwant("volume/v1"))
	fmt.Println(watch.Take())
	// Output:
	// [{v1 /dev/volume/v1 false}]
	// [{v1  true}]
}

// A value that Validate refuses does not remove the last valid one: it stays applied, and the
// status has the reason.
func ExampleRefuse() {
	sized := volumes()
	sized.Validate = func(_ string, v text) error {
		if !strings.HasSuffix(v.Value, "G") {
			return &models.FieldError{Field: "value", Value: v.Value, Expected: `a size such as "10G"`}
		}
		return nil
	}
	s := storage(sized)
	ctx, stop := running(s)
	defer stop()

	commit(ctx, s, want("volume/v1", "10G"))
	commit(ctx, s, want("volume/v1", "big")) // Want refuses it, too
	st, _ := s.Status("volume/v1")
	fmt.Println(st.State, st.Details, st.Actual)
	commit(ctx, s, scheduler.Refuse("volume/v1", errors.New("the file is not readable")))
	commit(ctx, s, want("volume/v1", "20G"))
	// Output:
	// create volume/v1 10G
	// KeyErrors: [volume/v1 (VALIDATE): invalid value: value is "big"; expected a size such as "10G"]
	// INVALID [value] value:"10G"
	// KeyErrors: [volume/v1 (VALIDATE): the file is not readable]
	// update volume/v1 10G -> 20G
}
