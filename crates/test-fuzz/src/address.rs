//! An address: what carries a private IPv4 address in any of the known ways is never public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kinora_http_fetch::{AddressVerdict, classify};

fn is_public(address: impl Into<IpAddr>) -> bool {
    matches!(classify(address.into()), AddressVerdict::Public)
}

pub(crate) fn check(bytes: [u8; 16]) {
    let six = Ipv6Addr::from(bytes);
    // A mapped address (RFC 4291, 2.5.5.2) or a translated one (RFC 6052) is what it carries.
    let carried = six.to_ipv4_mapped().or_else(|| {
        let translated = bytes[..12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
        let [.., a, b, c, d] = bytes;
        translated.then(|| Ipv4Addr::new(a, b, c, d))
    });
    if let Some(carried) = carried {
        assert!(is_public(carried) || !is_public(six), "{six}");
    } else if is_public(six) {
        assert_eq!(bytes[0] & 0xe0, 0x20, "not global unicast: {six}");
    }
    let four = Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]);
    if is_public(four) {
        assert!(
            !four.is_private() && !four.is_loopback() && !four.is_link_local(),
            "{four}"
        );
        assert!(
            !four.is_multicast() && !four.is_unspecified() && !four.is_broadcast(),
            "{four}"
        );
    } else {
        assert!(!is_public(four.to_ipv6_mapped()), "{four}");
        let [a, b, c, d] = four.octets().map(u16::from);
        let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a << 8 | b, c << 8 | d);
        let six_to_four = Ipv6Addr::new(0x2002, a << 8 | b, c << 8 | d, 0, 0, 0, 0, 1);
        assert!(!is_public(nat64) && !is_public(six_to_four), "{four}");
    }
}
