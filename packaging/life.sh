# The life of the Debian package on one machine: install, start, configure by etcd, upgrade, crash, remove and
# purge; then that of the RPM, which has the same files and scripts. packaging/machine runs it; /opt/old and /opt/new have the packages, /opt/servers has etcd and etcdctl.
set -euo pipefail

# A condition that never comes true only ends a script that has failed; a busy machine is slow.
patience=240

step() { printf '== %s\n' "$*"; }

fail() {
	printf 'FAILED: %s\n' "$*"
	systemctl status --no-pager --full keyplane || true
	agentctl values --state failed,pending,retrying,invalid 2>&1 | head -n 5 || true
	journalctl --no-pager -u keyplane | grep -v 'keyplane-agent.*\(goroutine\|\.go:\|^\S*()$\)' | tail -n 60 || true
	exit 1
}
trap 'fail "line $LINENO"' ERR

# until_true COMMAND...: waits for success.
until_true() {
	local end=$((SECONDS + patience))
	until "$@" >/run/until.out 2>&1; do
		[ $SECONDS -lt $end ] || { cat /run/until.out; fail "never true: $*"; }
		sleep 0.1
	done
}

expect() {
	[ "$2" = "$3" ] || fail "$1: $2; expected $3"
}

running() { systemctl show -P MainPID keyplane; }
declared_routes() { ip -4 route show via 10.77.0.2 | wc -l; }
ready() { agentctl status --ready; }
# What the kernel has, without counters and times.
network() {
	ip -d link show
	ip address show to-lab
	ip -4 route show
	ip -n lab address show
}

# The kernel itself completes the link-local addresses of new links a moment later.
kernel_is_done() {
	until_true eval '[ -z "$(ip -6 address show tentative)$(ip -n lab -6 address show tentative)" ]'
}

# unchanged COMMAND...: runs it, and fails if links, addresses or routes change meanwhile, also for a moment.
# Two changes of our own show that the observer sees what comes between them.
unchanged() {
	: >/run/seen
	ip -o monitor link address route >/run/seen &
	local observer=$!
	until_true eval 'ip address del 127.9.9.1/32 dev lo 2>/dev/null; ip address add 127.9.9.1/32 dev lo; grep -q 127.9.9.1/32 /run/seen'
	"$@"
	until_true ready
	ip address add 127.9.9.2/32 dev lo
	until_true grep -q 127.9.9.2/32 /run/seen
	kill $observer
	ip address del 127.9.9.1/32 dev lo
	ip address del 127.9.9.2/32 dev lo
	if grep -v -E '127\.9\.9\.' /run/seen; then
		fail "the network changed during: $*"
	fi
}

step "a machine with etcd and a namespace"
rm -f /var/lib/man-db/auto-update # it would read all manual pages of this machine after each change of a package
ip link set lo up
systemd-run --quiet --unit=etcd /opt/servers/etcd --data-dir=/tmp/etcd --unsafe-no-fsync
export ETCD_ENDPOINTS=127.0.0.1:2379
until_true /opt/servers/etcdctl endpoint health

step "install, and purge, where no systemd runs, as in the chroot in which an image of a machine is made"
unshare --mount sh -e -c 'mount -t tmpfs run /run && dpkg -i /opt/old/*.deb'
expect "the service is enabled in the image" "$(systemctl is-enabled keyplane)" enabled
unshare --mount sh -e -c 'mount -t tmpfs run /run && dpkg -P keyplane'
[ ! -e /etc/systemd/system/multi-user.target.wants/keyplane.service ] || fail "the purged package leaves its service enabled"
systemctl daemon-reload

step "install, remove, install and purge, where systemd is not installed, as in an image that gets it later"
link=/etc/systemd/system/multi-user.target.wants/keyplane.service
systemctl=$(command -v systemctl)
without_systemctl() {
	unshare --mount sh -e -c 'mount -t tmpfs run /run; mv "$0" "$0.away"; "$@" || failed=$?; mv "$0.away" "$0"; exit ${failed:-0}' "$systemctl" "$@"
}
without_systemctl dpkg -i /opt/old/*.deb
expect "the service is enabled in the image" "$(systemctl is-enabled keyplane)" enabled
without_systemctl dpkg -r keyplane
[ ! -e $link ] && [ ! -L $link ] || fail "the removed package leaves its service enabled"
without_systemctl dpkg -i /opt/old/*.deb
expect "the service is enabled in the image again" "$(systemctl is-enabled keyplane)" enabled
without_systemctl dpkg -P keyplane
[ ! -e $link ] && [ ! -L $link ] || fail "the purged package leaves its service enabled"
systemctl daemon-reload

step "install"
dpkg -i /opt/old/*.deb
expect "the service is enabled" "$(systemctl is-enabled keyplane)" enabled
expect "the service waits for the administrator" "$(systemctl is-active keyplane || true)" inactive
expect "the mode of the state folder" "$(stat -c %a /var/lib/keyplane)" 700
getent group keyplane >/dev/null || fail "there is no group keyplane"
systemd-analyze verify keyplane.service
systemd-analyze security --no-pager keyplane.service | tail -n 1

step "start, and configure by etcd"
echo 'endpoints: [127.0.0.1:2379]' >/etc/keyplane/etcd.conf
systemctl start keyplane
until_true ready
expect "the socket" "$(stat -c '%A %U:%G' /run/keyplane/vpp1.sock)" "srw-rw---- root:keyplane"
useradd --system --no-create-home --groups keyplane member
expect "a member of the group" "$(setpriv --reuid=member --regid=member --init-groups agentctl log set agent info | wc -l)" 1
expect "another user changes nothing" "$(setpriv --reuid=nobody --regid=nogroup --clear-groups agentctl log set agent info 2>&1 | grep -c 'the group keyplane')" 1
first=$(running)
ip netns add lab # after the start: the service must see it nevertheless
{
	echo 'config/linux/interfaces/v2/interface/to-lab {"name":"to-lab","type":"VETH","enabled":true,"ip_addresses":["10.77.0.1/24"],"veth":{"peer_if_name":"lab"}}'
	echo 'config/linux/interfaces/v2/interface/lab {"name":"lab","type":"VETH","enabled":true,"namespace":{"type":"NSID","reference":"lab"},"ip_addresses":["10.77.0.2/24"],"veth":{"peer_if_name":"to-lab"}}'
	for i in $(seq 0 997); do
		network=10.$((100 + i / 250)).$((i % 250)).0/24
		echo "config/linux/l3/v2/route/$network/to-lab {\"outgoing_interface\":\"to-lab\",\"scope\":\"GLOBAL\",\"dst_network\":\"$network\",\"gw_addr\":\"10.77.0.2\"}"
	done
} >/run/values
expect "values" "$(wc -l </run/values)" 1000
agentctl import /run/values >/dev/null
until_true eval '[ $(declared_routes) = 998 ]'
agentctl wait all --timeout 4m
expect "routes" "$(declared_routes)" 998
kernel_is_done
network >/run/standing

step "upgrade with 1000 values standing: no operation on the network"
echo '# of the administrator' >>/etc/keyplane/logs.conf
unchanged dpkg -i /opt/new/*.deb
[ "$(running)" != "$first" ] || fail "the old agent still runs"
cmp <(sha256sum </usr/sbin/keyplane-agent) <(sha256sum <"/proc/$(running)/exe") || fail "the new program does not run"
expect "a changed conffile" "$(tail -n 1 /etc/keyplane/logs.conf)" '# of the administrator'
network | diff /run/standing -
agentctl wait all --timeout 4m
agentctl drift

step "a kill and a hang: restarted, and the network stays"
mkdir -p /run/systemd/system/keyplane.service.d
printf '[Service]\nWatchdogSec=10s\n' >/run/systemd/system/keyplane.service.d/soon.conf
systemctl daemon-reload
systemctl restart keyplane
until_true ready
killed() {
	local before
	before=$(running)
	kill -s "$1" "$before"
	until_true eval "[ \$(systemctl show -P MainPID keyplane) != $before ] && [ \$(systemctl show -P MainPID keyplane) != 0 ]"
}
unchanged killed KILL
unchanged killed STOP # the watchdog finds it
journalctl --no-pager -u keyplane >/run/journal
grep -q 'Watchdog timeout' /run/journal || fail "not the watchdog restarted it"
rm /run/systemd/system/keyplane.service.d/soon.conf
systemctl daemon-reload

step "remove: the network is left, and adopted by the next installation"
dpkg -r keyplane
expect "the agent" "$(pgrep -x keyplane-agent || true)" ""
network | diff /run/standing -
dpkg -i /opt/new/*.deb
expect "the service is enabled again" "$(systemctl is-enabled keyplane)" enabled
unchanged systemctl start keyplane
agentctl drift
network | diff /run/standing -

step "remove with a configuration that the agent refuses: the network is left, now and later"
sed -i 's/^#REMOVE_NETWORK=no/REMOVE_NETWORK=yes/' /etc/default/keyplane
echo 'endpoints: [' >/etc/keyplane/etcd.conf
dpkg -r keyplane
[ ! -e /run/systemd/system/keyplane.service.d/remove.conf ] || fail "a later end of the agent would remove the network"
network | diff /run/standing -
echo 'endpoints: [127.0.0.1:2379]' >/etc/keyplane/etcd.conf
sed -i 's/^REMOVE_NETWORK=yes/#REMOVE_NETWORK=no/' /etc/default/keyplane
dpkg -i /opt/new/*.deb
unchanged systemctl start keyplane
network | diff /run/standing -

step "purge: the network is removed, as asked"
sed -i 's/^#REMOVE_NETWORK=no/REMOVE_NETWORK=yes/' /etc/default/keyplane
dpkg -P keyplane
expect "routes" "$(declared_routes)" 0
ip link show to-lab 2>/dev/null && fail "to-lab is left"
for path in /usr/sbin/keyplane-agent /usr/bin/agentctl /etc/default/keyplane /etc/keyplane/logs.conf /var/lib/keyplane /run/systemd/system/keyplane.service.d; do
	[ ! -e $path ] || fail "purge leaves $path"
done
# Debian's rpm installs into a system of dpkg only if forced, and knows none of its packages.
as_rpm() { rpm --force-debian --nodeps "$@"; }

step "the RPM: install, and start"
as_rpm -i /opt/old/*.rpm
expect "the service is enabled" "$(systemctl is-enabled keyplane)" enabled
expect "the service waits for the administrator" "$(systemctl is-active keyplane || true)" inactive
expect "the mode of the state folder" "$(stat -c %a /var/lib/keyplane)" 700
echo 'endpoints: [127.0.0.1:2379]' >/etc/keyplane/etcd.conf
systemctl start keyplane
until_true eval '[ $(declared_routes) = 998 ]'
until_true agentctl drift
kernel_is_done
first=$(running)

step "the RPM: upgrade"
echo '# of the administrator' >>/etc/keyplane/logs.conf
unchanged as_rpm -U /opt/new/*.rpm
[ "$(running)" != "$first" ] || fail "the old agent still runs"
cmp <(sha256sum </usr/sbin/keyplane-agent) <(sha256sum <"/proc/$(running)/exe") || fail "the new program does not run"
expect "a changed configuration file" "$(tail -n 1 /etc/keyplane/logs.conf)" '# of the administrator'

step "the RPM: removed, the network is left; removed again, the network is removed, as asked"
as_rpm -e keyplane
expect "the agent" "$(pgrep -x keyplane-agent || true)" ""
expect "routes" "$(declared_routes)" 998
as_rpm -i /opt/new/*.rpm
unchanged systemctl start keyplane
sed -i 's/^#REMOVE_NETWORK=no/REMOVE_NETWORK=yes/' /etc/default/keyplane
as_rpm -e keyplane
expect "routes" "$(declared_routes)" 0
[ ! -e /usr/sbin/keyplane-agent ] || fail "the removed RPM leaves the agent"
echo "the life of the packages is complete"
