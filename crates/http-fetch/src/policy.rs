//! Decides which address may be dialled on which port: denied by the operator, allowed by the
//! operator, local, or public. It neither resolves nor dials.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use kinora_contract::reference_url::is_usual_port;

use crate::address::{AddressVerdict, classify, reached_address};
use crate::error::{FetchCause, FetchError};
use crate::network::{Network, NetworkError};
use crate::surroundings::{AddressNearness, LocalNetworks};

/// A network that may be dialled although it is not public: `10.0.0.0/8`, or only on one port:
/// `10.0.0.0/8:8443`, `[fd00::/8]:8443`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllowedNetwork {
    network: Network,
    /// `None`: the usual ports, see [`is_usual_port`].
    port: Option<u16>,
}

/// Why a text is not an [`AllowedNetwork`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowedNetworkError {
    /// The network is invalid.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The part after the network is not a port.
    #[error("{0:?} is not a port from 1 to 65535")]
    Port(String),
}

impl AllowedNetwork {
    /// The only allowed port, if one is named.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    fn covers(&self, address: IpAddr, port: u16) -> bool {
        let at_port = self
            .port
            .map_or_else(|| is_usual_port(port), |own| own == port);
        at_port && self.network.contains(address)
    }
}

impl From<Network> for AllowedNetwork {
    fn from(network: Network) -> Self {
        Self {
            network,
            port: None,
        }
    }
}

impl FromStr for AllowedNetwork {
    type Err = AllowedNetworkError;

    fn from_str(text: &str) -> Result<Self, AllowedNetworkError> {
        let (network, port) = match text.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once("]:").unwrap_or((text, "")),
            // More than one colon means an IPv6 network.
            None if text.matches(':').count() == 1 => text.split_once(':').unwrap_or((text, "")),
            None => return Ok(Self::from(text.parse::<Network>()?)),
        };
        let network = network.parse()?;
        let plain = port.bytes().all(|c| c.is_ascii_digit());
        match port.parse() {
            Ok(number) if plain && number > 0 => Ok(Self {
                network,
                port: Some(number),
            }),
            _ => Err(AllowedNetworkError::Port(port.to_owned())),
        }
    }
}

impl fmt::Display for AllowedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, port } = self;
        match port {
            None => write!(f, "{network}"),
            Some(port) if network.is_ipv4() => write!(f, "{network}:{port}"),
            Some(port) => write!(f, "[{network}]:{port}"),
        }
    }
}

/// The dialling policy.
#[derive(Debug)]
pub(crate) struct AddressPolicy {
    allowed: Vec<AllowedNetwork>,
    denied: Vec<Network>,
    surroundings: LocalNetworks,
}

impl AddressPolicy {
    pub(crate) const fn new(
        allowed: Vec<AllowedNetwork>,
        denied: Vec<Network>,
        surroundings: LocalNetworks,
    ) -> Self {
        Self {
            allowed,
            denied,
            surroundings,
        }
    }

    /// Whether `host`, which resolved to `address`, may be dialled. Denied networks are refused
    /// first; allowed networks skip all further checks.
    ///
    /// # Errors
    /// `Forbidden` with the reason; `Later` if this machine cannot list its own addresses.
    pub(crate) fn permit(&self, host: &str, address: SocketAddr) -> Result<(), FetchError> {
        // For an IPv4-mapped address the system dials the IPv4 one; the address that a gateway may
        // translate to is checked as well.
        let (dialled, meant) = (address.ip().to_canonical(), reached_address(address.ip()));
        let forbid = |reason| {
            Err(FetchError::Forbidden(FetchCause::Address {
                host: host.to_owned(),
                address,
                reason,
            }))
        };
        if self
            .denied
            .iter()
            .any(|network| network.contains(dialled) || network.contains(meant))
        {
            return forbid("denied by the operator");
        }
        if self.allows(dialled, address.port()) {
            return Ok(());
        }
        if let AddressVerdict::Forbidden(reason) = classify(dialled) {
            return forbid(reason.name());
        }
        let nearness = self.surroundings.nearness(meant);
        match nearness.map_err(|error| FetchError::Later(FetchCause::Interfaces(error)))? {
            AddressNearness::Own => return forbid("an address of this machine"),
            AddressNearness::OnLink => return forbid("on a network of this machine"),
            AddressNearness::Elsewhere => {}
        }
        if !is_usual_port(address.port()) {
            return Err(FetchError::Forbidden(FetchCause::Port(address.port())));
        }
        Ok(())
    }

    /// Whether the operator explicitly allows this address and port.
    pub(crate) fn allows(&self, address: IpAddr, port: u16) -> bool {
        self.allowed.iter().any(|one| one.covers(address, port))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::surroundings::{InterfaceAddress, InterfaceSource};

    /// A machine with one address of each family, public by the registry.
    #[derive(Debug)]
    struct Host;

    impl InterfaceSource for Host {
        fn attached(&self) -> io::Result<Vec<InterfaceAddress>> {
            let attached = |address: &str, network: &str| InterfaceAddress {
                address: address.parse().unwrap(),
                network: network.parse().unwrap(),
            };
            Ok(vec![
                attached("198.41.0.4", "198.41.0.0/24"),
                attached("2600:1::1", "2600:1::/64"),
            ])
        }
    }

    #[derive(Debug)]
    struct Mute;

    impl InterfaceSource for Mute {
        fn attached(&self) -> io::Result<Vec<InterfaceAddress>> {
            Err(io::Error::other("too many open files"))
        }
    }

    fn clock() -> std::sync::Arc<dyn kinora_contract::Clock> {
        std::sync::Arc::new(kinora_contract::ManualClock::default())
    }

    fn policy(allowed: &[&str], denied: &[&str]) -> AddressPolicy {
        AddressPolicy::new(
            allowed.iter().map(|text| text.parse().unwrap()).collect(),
            denied.iter().map(|text| text.parse().unwrap()).collect(),
            LocalNetworks::new(Box::new(Host), clock()),
        )
    }

    /// Why an address is refused; `None` if it may be dialled.
    fn refusal(policy: &AddressPolicy, address: &str) -> Option<String> {
        match policy.permit("host.test", address.parse().unwrap()) {
            Ok(()) => None,
            Err(FetchError::Forbidden(FetchCause::Address { reason, .. })) => {
                Some(reason.to_owned())
            }
            Err(FetchError::Forbidden(cause)) => Some(cause.to_string()),
            Err(other) => panic!("{address}: {other:?}"),
        }
    }

    #[test]
    fn p09_own_addresses_and_networks_are_refused_whatever_the_registry_says() {
        let policy = policy(&[], &[]);
        for (address, reason) in [
            ("198.41.0.4:80", "an address of this machine"),
            ("198.41.0.4:9200", "an address of this machine"),
            ("[::ffff:198.41.0.4]:80", "an address of this machine"),
            ("[64:ff9b::198.41.0.4]:80", "an address of this machine"),
            ("198.41.0.1:80", "on a network of this machine"),
            ("198.41.0.255:443", "on a network of this machine"),
            ("[64:ff9b::198.41.0.9]:80", "on a network of this machine"),
            ("[2600:1::1]:80", "an address of this machine"),
            ("[2600:1::10]:80", "on a network of this machine"),
        ] {
            assert_eq!(
                refusal(&policy, address).as_deref(),
                Some(reason),
                "{address}"
            );
        }
        for address in ["198.41.1.4:80", "[2600:1:0:1::1]:443", "8.8.8.8:8080"] {
            assert_eq!(refusal(&policy, address), None, "{address}");
        }
    }

    #[test]
    fn p09_what_the_operator_denies_is_refused_also_where_it_is_allowed() {
        let policy = policy(&["10.0.0.0/8"], &["10.9.0.0/16", "9.0.0.0/8"]);
        let denied = Some("denied by the operator".to_owned());
        assert_eq!(refusal(&policy, "10.1.0.1:80"), None);
        assert_eq!(refusal(&policy, "10.9.0.1:80"), denied);
        assert_eq!(refusal(&policy, "9.9.9.9:443"), denied);
        assert_eq!(refusal(&policy, "[64:ff9b::9.9.9.9]:443"), denied);
    }

    #[test]
    fn p09_an_allowed_network_keeps_the_rule_of_ports_unless_it_names_one() {
        let policy = policy(
            &[
                "10.0.0.0/8",
                "192.168.0.0/16:587",
                "[fd00::/8]:25",
                "198.41.0.4",
            ],
            &[],
        );
        for (address, may) in [
            ("10.0.0.1:80", true),
            ("10.0.0.1:443", true),
            ("10.0.0.1:1024", true),
            ("10.0.0.1:587", false),
            ("10.0.0.1:1023", false),
            ("192.168.0.1:587", true),
            ("192.168.0.1:80", false),
            ("192.168.0.1:8080", false),
            ("[fd00::1]:25", true),
            ("[fd00::1]:80", false),
            // One of the machine's own addresses, allowed by name.
            ("198.41.0.4:8080", true),
            ("198.41.0.5:8080", false),
        ] {
            assert_eq!(refusal(&policy, address).is_none(), may, "{address}");
        }
    }

    #[test]
    fn p09_without_a_list_of_own_addresses_nothing_is_dialled() {
        let policy =
            AddressPolicy::new(vec![], vec![], LocalNetworks::new(Box::new(Mute), clock()));
        let refused = policy.permit("host.test", "8.8.8.8:80".parse().unwrap());
        let error = refused.unwrap_err();
        assert!(
            matches!(error, FetchError::Later(FetchCause::Interfaces(_))),
            "{error:?}"
        );
        assert!(!error.is_of_reference());
    }

    #[test]
    fn an_allowed_network_reads_as_it_is_written() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.0/8:8443",
            "[fd00::/8]:8443",
            "::1/128",
            "fd00::/8",
        ] {
            assert_eq!(text.parse::<AllowedNetwork>().unwrap().to_string(), text);
        }
        for (text, sentence) in [
            ("10.0.0.0/8:", "\"\" is not a port from 1 to 65535"),
            ("10.0.0.0/8:0", "\"0\" is not a port from 1 to 65535"),
            ("10.0.0.0/8:+80", "\"+80\" is not a port from 1 to 65535"),
            (
                "10.0.0.0/8:65536",
                "\"65536\" is not a port from 1 to 65535",
            ),
            ("[fd00::/8]:x", "\"x\" is not a port from 1 to 65535"),
            (
                "10.1.0.0/8:80",
                "10.1.0.0/8 has bits set after its prefix; the network is 10.0.0.0/8",
            ),
            (
                "[fd00::/8]",
                "\"[fd00::\" is not an IPv4 or IPv6 address, as in 10.0.0.0/8 or fd00::/8",
            ),
        ] {
            assert_eq!(
                text.parse::<AllowedNetwork>().unwrap_err().to_string(),
                sentence
            );
        }
    }
}
