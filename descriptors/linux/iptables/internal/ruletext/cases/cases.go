// Package cases has the rules with which package ruletext and the descriptor are tested. It is test code.
package cases

// A Spelling is a text of a rule, and its parsed form.
type Spelling struct {
	Family string // "4", "6", or "46" for both
	Text   string
	Normal string
}

// Spellings are ways to write options, each of which is one rule.
func Spellings() []Spelling {
	return []Spelling{
		{"46", ` -i lo	-j  ACCEPT `, `-i lo -j ACCEPT`},
		{"46", `"-i" "lo" -j "ACCEPT"`, `-i lo -j ACCEPT`},
		{"46", `-ilo -jACCEPT`, `-i lo -j ACCEPT`},
		{"4", `-fjACCEPT`, `-f -j ACCEPT`},
		{"4", `! -fjACCEPT`, `! -f -j ACCEPT`},
		{"4", `--fragment -j DROP`, `--fragments -j DROP`},
		{"46", `--in-interface=lo --jump=ACCEPT`, `--in-interface lo --jump ACCEPT`},
		{"46", `--in-i lo --j ACCEPT`, `--in-interface lo --jump ACCEPT`},
		{"4", `--sr 10.0.0.1 --dest=10.0.0.2 --prot tcp`, `--src 10.0.0.1 --destination 10.0.0.2 --protocol tcp`},
		{"4", `--so 10.0.0.1`, `--source 10.0.0.1`},
		{"46", `-p tcp --dpo 80`, `-p tcp --dport 80`},
		{"46", `-p 6 --dport=80`, `-p 6 --dport 80`},
		{"46", `-p 0x11 ! --dport 80`, `-p 0x11 ! --dport 80`},
		{"46", `-p tcp -m tcp --destination-p 80`, `-p tcp -m tcp --destination-port 80`},
		{"46", `-p tcp --tcp-flags=SYN,ACK SYN -j DROP`, `-p tcp --tcp-flags SYN,ACK SYN -j DROP`},
		{"6", `-p 58 --icmpv6-t 128`, `-p 58 --icmpv6-type 128`},
		{"6", `-p icmpv6 -m ipv6-icmp --icmpv6-type 128`, `-p icmpv6 -m ipv6-icmp --icmpv6-type 128`},
		{"46", `-j ACCEPT --`, `-j ACCEPT`},
		{"46", `-v -j ACCEPT`, `-v -j ACCEPT`},
		{"46", `-vvj ACCEPT`, `-v -v -j ACCEPT`},
		{"46", `-c 5 6 -j ACCEPT`, `-c 5 6 -j ACCEPT`},
		{"46", `--set-counters=5,6 -j ACCEPT`, `--set-counters 5,6 -j ACCEPT`},
		{"46", `-g other`, `-g other`},
		{"46", `-j other -p tcp --dport 22`, `-j other -p tcp --dport 22`},
		{"46", `-p tcp -j other --dport 22`, `-p tcp -j other --dport 22`},
		{"46", `-p tcp -j other ! --syn`, `-p tcp -j other ! --syn`},
		{"46", `-m socket -m mark --mark 5`, `-m socket -m mark --mark 5`},
		{"46", `-i -j -j DROP`, `-i -j -j DROP`},
		// What follows an option with a value is its value, whatever it looks like.
		{"46", `-m comment --comment -h`, `-m comment --comment -h`},
		{"46", `-m comment --comment --help`, `-m comment --comment --help`},
		{"46", `-m comment --comment=--version -j DROP`, `-m comment --comment --version -j DROP`},
		{"46", `-mcomment --comm="-V" -jDROP`, `-m comment --comment -V -j DROP`},
		{"46", `-m comment --comment -- -j DROP`, `-m comment --comment -- -j DROP`},
		{"46", `-m comment --comment ! -j DROP`, `-m comment --comment ! -j DROP`},
		{"46", `-m comment --comment --table -j DROP`, `-m comment --comment --table -j DROP`},
		{"46", `-m comment --comment "-A INPUT" -j DROP`, `-m comment --comment "-A INPUT" -j DROP`},
		{"46", `-m comment --comment COMMIT -j DROP`, `-m comment --comment COMMIT -j DROP`},
		{"46", `-m comment --comment "# a *filter :b [1:2]" -j DROP`, `-m comment --comment "# a *filter :b [1:2]" -j DROP`},
		{"46", `-m comment --comment "" -j DROP`, `-m comment --comment "" -j DROP`},
		{"46", `-m comment --comment= -j DROP`, `-m comment --comment "" -j DROP`},
		{"46", `-m comment --comment \ -j DROP`, `-m comment --comment "\\" -j DROP`},
		{"46", `-m comment --comment 'a -j DROP`, `-m comment --comment "'a" -j DROP`},
		{"46", `-m comment --comment "é $HOME ` + "`ls`" + ` %s \" \\" -j DROP`, `-m comment --comment "é $HOME ` + "`ls`" + ` %s \" \\" -j DROP`},
		{"46", `-m comment --comment "a	b"`, `-m comment --comment "a	b"`},
		{"46", `-j other -m comment --comment --help`, `-j other -m comment --comment --help`},
		{"46", `-j LOG --log-pre -h`, `-j LOG --log-prefix -h`},
		{"46", `-m string --algo bm --string --help -j DROP`, `-m string --algo bm --string --help -j DROP`},
	}
}
