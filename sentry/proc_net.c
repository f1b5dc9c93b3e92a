/*
 * /proc/PID/net. The loopback interface and unix sockets are shown; tables of network sockets have
 * their headers only.
 */
#include "fs/sock_unix.h"
#include "sentry/proc_priv.h"

static int show_unix(const struct pseudo_ref *ref UNUSED, struct fmt *out)
{
	unix_show(out);
	return 0;
}

#define DEV_TEXT                                                                                   \
	"Inter-|   Receive                                                |  Transmit\n"           \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs " \
	"drop fifo colls carrier compressed\n"                                                     \
	"    lo:       0       0    0    0    0     0          0         0        0       0    0 " \
	"   0    0     0       0          0\n"
#define TCP_HEAD                                                                                   \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode                                                     \n"
#define TCP6_HEAD                                                                                  \
	"  sl  local_address                         remote_address                        st "    \
	"tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define UDP_HEAD                                                                                   \
	"   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "     \
	"timeout inode ref pointer drops            \n"
#define RAW_HEAD                                                                                   \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode ref pointer drops\n"
#define UDP6_HEAD                                                                                  \
	"  sl  local_address                         remote_address                        st "    \
	"tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n"
#define ROUTE_HEAD                                                                                 \
	"Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"      \
	"                                                       \n"
#define IF_INET6_TEXT "00000000000000000000000000000001 01 80 10 80       lo\n"
#define ARP_HEAD "IP address       HW type     Flags       HW address            Mask     Device\n"
#define NETLINK_HEAD                                                                               \
	"sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    "      \
	"Inode\n"
#define PACKET_HEAD "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n"
#define SOCKSTAT_TEXT                                                                              \
	"sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\nUDP: inuse 0 mem 0\n"          \
	"UDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
#define SOCKSTAT6_TEXT                                                                             \
	"TCP6: inuse 0\nUDP6: inuse 0\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory "   \
	"0\n"
#define SNMP_TEXT                                                                                  \
	"Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams "             \
	"InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout "  \
	"ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates\n"                           \
	"Ip: 2 64 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"                                             \
	"Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails "           \
	"EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"           \
	"Tcp: 1 200 120000 -1 0 0 0 0 0 0 0 0 0 0 0\n"                                             \
	"Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors "   \
	"IgnoredMulti MemErrors\n"                                                                 \
	"Udp: 0 0 0 0 0 0 0 0 0\n"

const struct pseudo_row proc_net_rows[] = {
	PROC_TEXT("dev", DEV_TEXT),
	PROC_FILE("unix", 0444, show_unix),
	PROC_TEXT("tcp", TCP_HEAD),
	PROC_TEXT("tcp6", TCP6_HEAD),
	PROC_TEXT("udp", UDP_HEAD),
	PROC_TEXT("udp6", UDP6_HEAD),
	PROC_TEXT("udplite", UDP_HEAD),
	PROC_TEXT("udplite6", UDP6_HEAD),
	PROC_TEXT("raw", RAW_HEAD),
	PROC_TEXT("raw6", UDP6_HEAD),
	PROC_TEXT("icmp", UDP_HEAD),
	PROC_TEXT("icmp6", UDP6_HEAD),
	PROC_TEXT("route", ROUTE_HEAD),
	PROC_TEXT("ipv6_route", ""),
	PROC_TEXT("if_inet6", IF_INET6_TEXT),
	PROC_TEXT("arp", ARP_HEAD),
	PROC_TEXT("netlink", NETLINK_HEAD),
	PROC_TEXT("packet", PACKET_HEAD),
	PROC_TEXT("sockstat", SOCKSTAT_TEXT),
	PROC_TEXT("sockstat6", SOCKSTAT6_TEXT),
	PROC_TEXT("snmp", SNMP_TEXT),
	PROC_TEXT("snmp6", ""),
	PROC_TEXT("dev_mcast", ""),
	PROC_TEXT("igmp", "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"),
	PROC_TEXT("wireless",
		  "Inter-| sta-|   Quality        |   Discarded packets               | Missed "
		  "| WE\n face | tus | link level noise |  nwid  crypt   frag  retry   misc | "
		  "beacon | 22\n"),
	{},
};
