//! A network in CIDR notation, as an operator writes it: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`.
//! Host bits are refused, so a mistyped prefix is an error rather than a wider hole.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses that share the first `prefix_bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    base: IpAddr,
    prefix_bits: u8,
}

/// Why a text is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The part before the slash is not an IP address.
    #[error("{0:?} is not an IPv4 or IPv6 address, as in 10.0.0.0/8 or fd00::/8")]
    Address(String),
    /// The part after the slash is not a number in range.
    #[error("{given:?} is not a prefix length from 0 to {max}")]
    Prefix {
        /// The given text.
        given: String,
        /// The number of bits of the address family.
        max: u8,
    },
    /// Bits are set beyond the prefix.
    #[error("{given} has bits set after its prefix; the network is {meant}")]
    HostBits {
        /// The given text.
        given: String,
        /// The network that contains it.
        meant: Network,
    },
    /// An IPv4 network in IPv6 form.
    #[error("{0} is an IPv4 network in IPv6 form; write it in IPv4 form")]
    Mapped(String),
}

impl Network {
    /// A network known to be well-formed.
    pub(crate) const fn literal(base: IpAddr, prefix_bits: u8) -> Self {
        Self { base, prefix_bits }
    }

    /// Whether it is a network of IPv4 addresses.
    pub const fn is_ipv4(&self) -> bool {
        self.base.is_ipv4()
    }

    /// Whether `address` is in this network. The two families never mix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let free = 32 - u32::from(self.prefix_bits);
                let differ = base.to_bits() ^ address.to_bits();
                differ.checked_shr(free).unwrap_or(0) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let free = 128 - u32::from(self.prefix_bits);
                let differ = base.to_bits() ^ address.to_bits();
                differ.checked_shr(free).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The network with `prefix_bits` bits that contains `address`. Longer prefixes are cut to the
    /// length of the address.
    pub(crate) fn around(address: IpAddr, prefix_bits: u8) -> Self {
        let prefix_bits = prefix_bits.min(if address.is_ipv4() { 32 } else { 128 });
        let base = match address {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(prefix_bits.into()).unwrap_or(0);
                IpAddr::V4((address.to_bits() & !host).into())
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(prefix_bits.into()).unwrap_or(0);
                IpAddr::V6((address.to_bits() & !host).into())
            }
        };
        Self { base, prefix_bits }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let base: IpAddr = address
            .parse()
            .map_err(|_| NetworkError::Address(address.to_owned()))?;
        if base.to_canonical() != base {
            return Err(NetworkError::Mapped(text.to_owned()));
        }
        let max = if base.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => max,
            Some(digits) => prefix_bits(digits, max)?,
        };
        let network = Self::around(base, prefix_bits);
        if network.base != base {
            return Err(NetworkError::HostBits {
                given: text.to_owned(),
                meant: network,
            });
        }
        Ok(network)
    }
}

/// Digits only: the number parser would also accept a sign.
fn prefix_bits(digits: &str, max: u8) -> Result<u8, NetworkError> {
    let plain = digits.bytes().all(|c| c.is_ascii_digit());
    match digits.parse() {
        Ok(bits) if plain && bits <= max => Ok(bits),
        _ => Err(NetworkError::Prefix {
            given: digits.to_owned(),
            max,
        }),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_and_last_address_are_in_and_their_neighbours_out() {
        for (text, first, last, before, after) in [
            (
                "10.0.0.0/8",
                "10.0.0.0",
                "10.255.255.255",
                "9.255.255.255",
                "11.0.0.0",
            ),
            (
                "172.16.0.0/12",
                "172.16.0.0",
                "172.31.255.255",
                "172.15.255.255",
                "172.32.0.0",
            ),
            (
                "192.0.2.7",
                "192.0.2.7",
                "192.0.2.7",
                "192.0.2.6",
                "192.0.2.8",
            ),
            ("fd00::/8", "fd00::", "fdff:ffff::1", "fcff::", "fe00::"),
            (
                "2001:db8::5/128",
                "2001:db8::5",
                "2001:db8::5",
                "2001:db8::4",
                "2001:db8::6",
            ),
        ] {
            let one = network(text);
            let within = |address: &str| one.contains(address.parse().unwrap());
            assert!(within(first) && within(last), "{text}");
            assert!(!within(before) && !within(after), "{text}");
        }
    }

    #[test]
    fn a_prefix_of_zero_is_one_whole_family() {
        assert!(network("0.0.0.0/0").contains("255.255.255.255".parse().unwrap()));
        assert!(!network("0.0.0.0/0").contains("::".parse().unwrap()));
        assert!(network("::/0").contains("ffff::1".parse().unwrap()));
        assert!(!network("::/0").contains("1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn a_wrong_text_is_told_what_is_wrong() {
        for (text, sentence) in [
            (
                "",
                "\"\" is not an IPv4 or IPv6 address, as in 10.0.0.0/8 or fd00::/8",
            ),
            (
                "intranet/8",
                "\"intranet\" is not an IPv4 or IPv6 address, as in 10.0.0.0/8 or fd00::/8",
            ),
            ("10.0.0.0/33", "\"33\" is not a prefix length from 0 to 32"),
            ("10.0.0.0/", "\"\" is not a prefix length from 0 to 32"),
            ("10.0.0.0/+8", "\"+8\" is not a prefix length from 0 to 32"),
            ("fd00::/129", "\"129\" is not a prefix length from 0 to 128"),
            (
                "10.1.2.3/8",
                "10.1.2.3/8 has bits set after its prefix; the network is 10.0.0.0/8",
            ),
            (
                "fd00::1/8",
                "fd00::1/8 has bits set after its prefix; the network is fd00::/8",
            ),
            (
                "::ffff:10.0.0.0/104",
                "::ffff:10.0.0.0/104 is an IPv4 network in IPv6 form; write it in IPv4 form",
            ),
        ] {
            let error = text.parse::<Network>().unwrap_err();
            assert_eq!(error.to_string(), sentence);
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "fd00::/8", "::/0", "::1/128"] {
            assert_eq!(network(text).to_string(), text);
        }
    }
}
