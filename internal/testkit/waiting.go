package testkit

import "flag"

// RunManyAtOnce lets eight tests of a package run at once, whatever the number of processors.
// It is for packages whose tests mostly wait for servers. TestMain calls it first; the flag
// -parallel overrules it.
func RunManyAtOnce() {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // the flag exists in each test program
	}
}
