//! Classifies a single address as public, or forbidden with a reason. Deny by default: only
//! addresses that the IANA registries list as global unicast are allowed. Names, ports and
//! exceptions are handled elsewhere.
//!
//! Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::Network;

/// The result of [`classify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressVerdict {
    /// Global unicast: anyone on the Internet could reach it, so the service may.
    Public,
    /// Must not be dialled.
    Forbidden(ForbiddenReason),
}

/// Why an address is forbidden, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenReason(&'static str);

impl ForbiddenReason {
    /// The name of the address range.
    pub(crate) const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ForbiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// IPv4 networks that are not global unicast. All others are public.
const V4_FORBIDDEN: &[(Network, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this network"),
    (v4([10, 0, 0, 0], 8), "private use"),
    (v4([100, 64, 0, 0], 10), "shared address space"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    // Not in the registry: the host agent of Azure, reachable only from its guests.
    (v4([168, 63, 129, 16], 32), "cloud platform agent"),
    (v4([169, 254, 0, 0], 16), "link-local"),
    (v4([172, 16, 0, 0], 12), "private use"),
    (v4([192, 0, 0, 0], 24), "IETF protocol assignments"),
    (v4([192, 0, 2, 0], 24), "documentation"),
    (v4([192, 88, 99, 0], 24), "6to4 relay anycast"),
    (v4([192, 168, 0, 0], 16), "private use"),
    (v4([198, 18, 0, 0], 15), "benchmarking"),
    (v4([198, 51, 100, 0], 24), "documentation"),
    (v4([203, 0, 113, 0], 24), "documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([240, 0, 0, 0], 4), "reserved or broadcast"),
];

/// The only part of IPv6 that is assigned as global unicast (RFC 4291, section 2.4).
const V6_GLOBAL: Network = v6([0x2000, 0, 0, 0], 3);

/// Networks within [`V6_GLOBAL`] that are not public.
const V6_FORBIDDEN: &[(Network, &str)] = &[
    // Contains Teredo, 2001::/32, whose addresses embed an IPv4 one.
    (v6([0x2001, 0, 0, 0], 23), "IETF protocol assignments"),
    (v6([0x2001, 0xdb8, 0, 0], 32), "documentation"),
    (v6([0x3fff, 0, 0, 0], 20), "documentation"),
];

/// Translates to the IPv4 address in its last 32 bits (RFC 6052).
const NAT64: Network = v6([0x64, 0xff9b, 0, 0], 96);
/// Tunnels to the IPv4 address in bits 16 to 48 (RFC 3056).
const SIX_TO_FOUR: Network = v6([0x2002, 0, 0, 0], 16);
/// Tunnels to the IPv4 address in its last 32 bits, inverted (RFC 4380).
const TEREDO: Network = v6([0x2001, 0, 0, 0], 32);

/// Classifies `address` as it would be dialled.
///
/// Embedded IPv4 addresses are unwrapped, because a gateway on the way may send the packet there.
/// IPv4-mapped and NAT64 addresses are classified by the embedded address. The old tunnels
/// (IPv4-compatible, 6to4, Teredo, ISATAP) are always forbidden: no public server is reachable only
/// there, and this machine cannot know what the tunnel's end does.
pub fn classify(address: IpAddr) -> AddressVerdict {
    match address {
        IpAddr::V4(address) => judge_v4(address),
        IpAddr::V6(address) => judge_v6(address),
    }
}

/// The address that a packet to `address` may reach: the IPv4 address embedded in a mapped or NAT64
/// one, or `address` itself.
pub(crate) fn reached_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if NAT64.contains(address.into()) => {
            Ipv4Addr::from_bits(address.to_bits() as u32).into()
        }
        other => other,
    }
}

fn judge_v4(address: Ipv4Addr) -> AddressVerdict {
    find_range(V4_FORBIDDEN, address.into()).map_or(AddressVerdict::Public, forbid)
}

fn judge_v6(address: Ipv6Addr) -> AddressVerdict {
    if let Some(inner) = address.to_ipv4_mapped() {
        return judge_v4(inner);
    }
    let last = Ipv4Addr::from_bits(address.to_bits() as u32);
    if NAT64.contains(address.into()) {
        return judge_v4(last);
    }
    if let Some(tunnel) = tunnel(address) {
        return forbid(tunnel);
    }
    if !V6_GLOBAL.contains(address.into()) {
        return forbid("not global unicast");
    }
    find_range(V6_FORBIDDEN, address.into()).map_or(AddressVerdict::Public, forbid)
}

/// The name of the tunnel that `address` belongs to.
fn tunnel(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let compatible = segments[..6] == [0; 6];
    // An interface identifier of ::0:5efe:a.b.c.d, with or without the universal bit (RFC 5214).
    let isatap = segments[4] & !0x0200 == 0 && segments[5] == 0x5efe;
    if SIX_TO_FOUR.contains(address.into()) {
        Some("6to4 tunnel")
    } else if TEREDO.contains(address.into()) {
        Some("Teredo tunnel")
    } else if isatap {
        Some("ISATAP tunnel")
    } else if compatible {
        Some("unspecified, loopback or IPv4-compatible")
    } else {
        None
    }
}

fn find_range(table: &[(Network, &'static str)], address: IpAddr) -> Option<&'static str> {
    let row = table.iter().find(|(network, _)| network.contains(address));
    row.map(|(_, name)| *name)
}

fn forbid(name: &'static str) -> AddressVerdict {
    AddressVerdict::Forbidden(ForbiddenReason(name))
}

const fn v4(octets: [u8; 4], prefix_bits: u8) -> Network {
    let [a, b, c, d] = octets;
    Network::literal(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix_bits)
}

const fn v6(head: [u16; 4], prefix_bits: u8) -> Network {
    let [a, b, c, d] = head;
    Network::literal(
        IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
        prefix_bits,
    )
}
