// Package core is the part of the simulated VPP that all plugins share: the socket with
// its clients, the registration of messages, the table of interfaces, and the faults that
// a test asks for.
//
// # How a plugin registers
//
// A plugin is a package with a function New. New makes the plugin's empty state for one
// VPP process and calls [VPP.Register] once, with a [Plugin]: the messages that it serves,
// the pages of the command line that it shows, and the events of interfaces that it
// follows. A plugin that needs another one takes it as a parameter of New.
//
//	func New(vpp *core.VPP, tables *ip.IP) {
//		p := &plugin{vpp: vpp, tables: tables}
//		vpp.Register(core.Plugin{
//			Messages: []core.Message{core.Call(p.create), core.Dump(p.dump)},
//			Pages:    map[string]func() string{"show acl": p.show},
//			Removing: p.forget,
//		})
//	}
//
// A message is made by one of three functions: [Call] has one reply, [Dump] has any number
// of details, and [On] is a Call about an interface that must exist. They take the types
// of request and answer from the function that serves the message, so a plugin names no
// message by text. VPP's plugin of a message is the package of GoVPP's bindings that it
// comes from; Options.Without removes the messages of such a plugin.
//
// Package vppsim lists the plugins of the simulated VPP. A new plugin is one folder and
// one line in that list.
//
// # Order and ownership
//
// One [VPP] is one life of the process: a restart makes all plugins again. A mutex of the
// [Server] stands for VPP's main thread. The functions of plugins run with it held, one
// request after the other, so plugins need no locks. A client gets the answers in the
// order of its requests. Events wait until its pipelined requests are answered.
package core
