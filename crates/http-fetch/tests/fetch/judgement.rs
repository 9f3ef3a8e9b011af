//! The judgement of addresses, row by row and by property.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use kinora_http_fetch::{AddressVerdict, classify};
use proptest::prelude::*;

fn public(address: IpAddr) -> bool {
    classify(address) == AddressVerdict::Public
}

#[test]
fn public_addresses_pass_up_to_the_edges_of_every_forbidden_network() {
    for text in [
        "1.0.0.0",
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700::1111",
        "2a00:1450::1",
        "3ffe:ffff::1",
        "3fff:1000::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert!(public(text.parse().unwrap()), "{text}");
    }
}

/// Firsts, lasts and well-known members of what is not global unicast.
const SPECIAL: &[&str] = &[
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.0",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.192",
    "192.0.0.255",
    "192.0.2.0",
    "192.0.2.255",
    "192.88.99.0",
    "192.88.99.255",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.255",
    "224.0.0.0",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.254",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "100::1",
    "200::1",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:ffff::1",
    "64:ff9b::1:0:0",
    "1fff:ffff::1",
    "2001::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    "2001:db8:ffff::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    // What embeds a public address is still a tunnel.
    "::8.8.8.8",
    "2002:808:808::1",
    "2001:0:808:808::f7f7:f7f7",
    "2a00::5efe:8.8.8.8",
    "2a00::200:5efe:8.8.8.8",
];

#[test]
fn everything_special_is_forbidden_from_its_first_address_to_its_last() {
    for text in SPECIAL {
        assert!(!public(text.parse().unwrap()), "{text}");
    }
}

/// Every form in which an IPv6 address can carry `inner`.
fn embeddings(inner: Ipv4Addr) -> Vec<IpAddr> {
    let bits = u128::from(inner.to_bits());
    let prefixed = |prefix: &str, shift: u32| {
        let prefix: Ipv6Addr = prefix.parse().unwrap();
        IpAddr::from(Ipv6Addr::from_bits(prefix.to_bits() | bits << shift))
    };
    vec![
        IpAddr::V4(inner),
        prefixed("::ffff:0:0", 0),
        prefixed("::", 0),
        prefixed("::ffff:0:0:0", 0),
        prefixed("64:ff9b::", 0),
        prefixed("64:ff9b:1::", 0),
        prefixed("2002::", 80),
        prefixed("2002::1", 80),
        prefixed("2001::", 64),
        Ipv6Addr::from_bits(0x2001 << 112 | (!bits & 0xffff_ffff)).into(),
        prefixed("2606:4700::5efe:0:0", 0),
        prefixed("2606:4700::200:5efe:0:0", 0),
        prefixed("fe80::5efe:0:0", 0),
    ]
}

fn private() -> impl Strategy<Value = Ipv4Addr> {
    let networks = [
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.168.0.0", 16),
        ("198.18.0.0", 15),
        ("224.0.0.0", 3),
    ];
    (proptest::sample::select(networks.to_vec()), any::<u32>()).prop_map(|((base, bits), host)| {
        let base: Ipv4Addr = base.parse().unwrap();
        Ipv4Addr::from_bits(base.to_bits() | host >> bits)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_private_address_is_forbidden_in_every_embedding(inner in private()) {
        for address in embeddings(inner) {
            prop_assert!(!public(address), "{address} for {inner}");
        }
    }

    #[test]
    fn any_address_is_judged_without_panic_and_ipv6_outside_global_unicast_is_forbidden(
        bits in any::<u128>(), short in any::<u32>(),
    ) {
        classify(Ipv4Addr::from_bits(short).into());
        let address = Ipv6Addr::from_bits(bits);
        let carries = address.to_ipv4_mapped().is_some() || bits >> 32 == 0x64_ff9b << 64;
        if bits >> 125 != 1 && !carries {
            prop_assert!(!public(address.into()), "{address}");
        }
    }

    #[test]
    fn a_mapped_or_translated_address_is_what_it_carries(short in any::<u32>()) {
        let inner = Ipv4Addr::from_bits(short);
        let expected = public(inner.into());
        prop_assert_eq!(public(inner.to_ipv6_mapped().into()), expected);
        let nat64 = Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(short));
        prop_assert_eq!(public(nat64.into()), expected);
    }
}
