package testkit

import "flag"

// RunManyAtOnce runs eight tests of a package in parallel on any number of processors. It
// is for packages whose tests mostly wait for servers. Call it first in TestMain; the flag
// -parallel overrides it.
func RunManyAtOnce() {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // the flag exists in each test program
	}
}
