package ruletext

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An extension is a match or target with the options that it adds to a rule.
type extension struct {
	name    string
	options []option
}

// An option is named without its dashes. values is how many words follow it.
type option struct {
	name   string
	values int
}

// matchTexts are the matches of iptables 1.8.9 and their options, which a test compares with the installed iptables. "=" stands
// for a value of an option. Those of both IP versions and all revisions are together: iptables refuses what the host does not have.
//
//nolint:misspell // a name of an option
const matchTexts = `
	addrtype: src-type= dst-type= limit-iface-in limit-iface-out
	ah: ahspi= ahlen= ahres
	bpf: bytecode= object-pinned=
	cgroup: cgroup= path=
	cluster: cluster-total-nodes= cluster-local-node= cluster-local-nodemask= cluster-hash-seed=
	comment: comment=
	connbytes: connbytes= connbytes-dir= connbytes-mode=
	connlabel: label= set
	connlimit: connlimit-upto= connlimit-above= connlimit-mask= connlimit-saddr connlimit-daddr
	connmark: mark=
	conntrack: ctstate= ctproto= ctorigsrc= ctorigdst= ctreplsrc= ctrepldst= ctstatus= ctexpire= ctorigsrcport= ctorigdstport=
		ctreplsrcport= ctrepldstport= ctdir=
	cpu: cpu=
	dccp: source-port= sport= destination-port= dport= dccp-types= dccp-option=
	devgroup: src-group= dst-group=
	dscp: dscp= dscp-class=
	dst: dst-len= dst-opts=
	ecn: ecn-tcp-cwr ecn-tcp-ece ecn-ip-ect=
	esp: espspi=
	eui64:
	frag: fragid= fraglen= fragres fragfirst fragmore fraglast
	hashlimit: hashlimit= hashlimit-burst= hashlimit-htable-size= hashlimit-htable-max= hashlimit-htable-gcinterval=
		hashlimit-htable-expire= hashlimit-mode= hashlimit-name= hashlimit-upto= hashlimit-above= hashlimit-srcmask= hashlimit-dstmask=
		hashlimit-rate-match hashlimit-rate-interval=
	hbh: hbh-len= hbh-opts=
	helper: helper=
	hl: hl-lt= hl-gt= hl-eq= hl=
	icmp: icmp-type=
	icmp6: icmpv6-type=
	ipcomp: ipcompspi= compres
	iprange: src-range= dst-range=
	ipv6header: header= soft
	ipvs: ipvs vproto= vaddr= vport= vdir= vmethod= vportctl=
	length: length=
	limit: limit= limit-burst=
	mac: mac-source=
	mark: mark=
	mh: mh-type=
	multiport: source-ports= sports= destination-ports= dports= ports=
	nfacct: nfacct-name=
	osf: genre= ttl= log=
	owner: uid-owner= gid-owner= pid-owner= sid-owner= cmd-owner= socket-exists suppl-groups
	physdev: physdev-in= physdev-out= physdev-is-in physdev-is-out physdev-is-bridged
	pkttype: pkt-type=
	policy: dir= pol= strict reqid= spi= tunnel-src= tunnel-dst= proto= mode= next
	quota: quota=
	rateest: rateest1= rateest= rateest2= rateest-bps1 rateest-pps1 rateest-bps2 rateest-pps2 rateest-bps rateest-pps rateest-delta
		rateest-lt rateest-gt rateest-eq
	realm: realm=
	recent: set rcheck update remove seconds= reap hitcount= rttl name= rsource rdest mask=
	rpfilter: loose validmark accept-local invert
	rt: rt-type= rt-segsleft= rt-len= rt-0-res rt-0-addrs= rt-0-not-strict
	sctp: source-port= sport= destination-port= dport= chunk-types=
	set: match-set== set== return-nomatch update-counters packets-eq= packets-lt= packets-gt= bytes-eq= bytes-lt= bytes-gt=
		update-subcounters
	socket: transparent nowildcard restore-skmark
	srh: srh-next-hdr= srh-hdr-len-eq= srh-hdr-len-gt= srh-hdr-len-lt= srh-segs-left-eq= srh-segs-left-gt= srh-segs-left-lt=
		srh-last-entry-eq= srh-last-entry-gt= srh-last-entry-lt= srh-tag= srh-psid= srh-nsid= srh-lsid=
	state: state=
	statistic: mode= probability= every= packet=
	string: from= to= algo= string= hex-string= icase
	tcp: source-port= sport= destination-port= dport= syn tcp-flags== tcp-option=
	tcpmss: mss=
	time: datestart= datestop= timestart= timestop= contiguous weekdays= monthdays= localtz utc kerneltz
	tos: tos=
	ttl: ttl-lt= ttl-gt= ttl-eq= ttl=
	u32: u32=
	udp: source-port= sport= destination-port= dport=
`

// targetTexts are the targets, in the same form.
//
//nolint:misspell // a name of an option
const targetTexts = `
	ACCEPT: DROP: QUEUE: RETURN:
	AUDIT: type=
	CHECKSUM: checksum-fill
	CLASSIFY: set-class=
	CLUSTERIP: new hashmode= clustermac= total-nodes= local-node= hash-init=
	CONNMARK: set-mark= save-mark restore-mark mask= set-xmark= and-mark= or-mark= xor-mark= ctmask= nfmask= left-shift-mark=
		right-shift-mark=
	CONNSECMARK: save restore
	CT: notrack helper= ctevents= expevents= zone-orig= zone-reply= zone= timeout=
	DNAT: to-destination= random persistent
	DNPT: src-pfx= dst-pfx=
	DSCP: set-dscp= set-dscp-class=
	ECN: ecn-tcp-remove ecn-tcp-cwr= ecn-tcp-ece= ecn-ip-ect=
	HL: hl-set= hl-dec= hl-inc=
	HMARK: hmark-tuple= hmark-src-prefix= hmark-dst-prefix= hmark-sport-mask= hmark-dport-mask= hmark-spi-mask= hmark-sport= hmark-dport=
		hmark-spi= hmark-proto-mask= hmark-rnd= hmark-mod= hmark-offset=
	IDLETIMER: timeout= label= alarm
	LED: led-trigger-id= led-delay= led-always-blink
	LOG: log-level= log-prefix= log-tcp-sequence log-tcp-options log-ip-options log-uid log-macdecode
	MARK: set-mark= and-mark= or-mark= set-xmark= xor-mark=
	MASQUERADE: to-ports= random random-fully
	NETMAP: to=
	NFLOG: nflog-group= nflog-prefix= nflog-range= nflog-size= nflog-threshold=
	NFQUEUE: queue-num= queue-balance= queue-bypass queue-cpu-fanout
	NOTRACK:
	RATEEST: rateest-name= rateest-interval= rateest-ewmalog=
	REDIRECT: to-ports= random
	REJECT: reject-with=
	SECMARK: selctx=
	SET: add-set== del-set== exist timeout= map-set== map-mark map-prio map-queue
	SNAT: to-source= random random-fully persistent
	SNPT: src-pfx= dst-pfx=
	SYNPROXY: sack-perm timestamp wscale= mss= ecn
	TCPMSS: set-mss= clamp-mss-to-pmtu
	TCPOPTSTRIP: strip-options=
	TEE: gateway= oif=
	TOS: set-tos= and-tos= or-tos= xor-tos=
	TPROXY: on-port= on-ip= tproxy-mark=
	TRACE:
	TTL: ttl-set= ttl-dec= ttl-inc=
	ULOG: ulog-nlgroup= ulog-prefix= ulog-cprange= ulog-qthreshold=
`

// matchExtensions and targetExtensions return the known extensions by name.
var (
	matchExtensions = sync.OnceValue(func() map[string]*extension {
		all := extensionsOf(matchTexts)
		for _, other := range []string{"icmpv6", "ipv6-icmp"} {
			all[other] = all["icmp6"]
		}
		return all
	})
	targetExtensions = sync.OnceValue(func() map[string]*extension { return extensionsOf(targetTexts) })
)

// IsTarget reports whether iptables may take a name for that of a target, and so refuses a chain that has it.
func IsTarget(name string) bool { return name == "standard" || targetExtensions()[name] != nil }

// extensionsOf parses texts such as "mark: mark= ecn: ecn-tcp-cwr".
func extensionsOf(text string) map[string]*extension {
	all := map[string]*extension{}
	var last *extension
	for word := range strings.FieldsSeq(text) {
		if name, begins := strings.CutSuffix(word, ":"); begins {
			last = &extension{name: name}
			all[name] = last
			continue
		}
		name := strings.TrimRight(word, "=")
		last.options = append(last.options, option{name, len(word) - len(name)})
	}
	return all
}

// find returns the option with that whole name.
func (e *extension) find(name string) (option, bool) {
	i := slices.IndexFunc(e.options, func(o option) bool { return o.name == name })
	if i < 0 {
		return option{}, false
	}
	return e.options[i], true
}

// ofProtocol returns the match that iptables adds by itself for the options of a protocol, or nil. Its name or number
// follows -p.
func ofProtocol(protocol string) *extension {
	name := strings.ToLower(protocol)
	if n, err := strconv.ParseUint(name, 0, 8); err == nil {
		name = map[uint64]string{1: "icmp", 6: "tcp", 17: "udp", 33: "dccp", 50: "esp", 51: "ah", 58: "icmp6", 108: "ipcomp", 132: "sctp", 135: "mh"}[n]
	}
	switch name {
	case "icmp", "tcp", "udp", "dccp", "esp", "ah", "icmp6", "icmpv6", "ipv6-icmp", "ipcomp", "sctp", "mh":
		return matchExtensions()[name]
	}
	return nil
}
