//! The machine's own addresses and attached networks. Services that trust local traffic listen
//! there, so references must not point to them, even if the registries call them public. It knows
//! only what the interfaces report; operators must deny routes without an address on the link, and
//! addresses that a gateway translates to this machine.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use if_addrs::IfAddr;
use kinora_contract::{Clock, Stopwatch};

use crate::network::Network;

/// How long the list of interfaces is cached.
const INTERFACES_TTL: Duration = Duration::from_secs(2);

/// An address of an interface, with the network on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The machine's own address.
    pub address: IpAddr,
    /// The network that the interface reaches without a gateway.
    pub network: Network,
}

/// Lists the interfaces' addresses.
pub trait InterfaceSource: Send + Sync + Debug {
    /// Every address of every interface.
    ///
    /// # Errors
    /// If the system does not list them.
    fn attached(&self) -> io::Result<Vec<InterfaceAddress>>;
}

/// The interfaces of this machine, in the network namespace of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemInterfaces;

impl InterfaceSource for SystemInterfaces {
    fn attached(&self) -> io::Result<Vec<InterfaceAddress>> {
        let listed = if_addrs::get_if_addrs()?;
        let attached = listed.into_iter().map(|interface| {
            let address = interface.ip();
            let prefix_bits = match interface.addr {
                IfAddr::V4(of) => of.prefixlen,
                IfAddr::V6(of) => of.prefixlen,
            };
            InterfaceAddress {
                address,
                // A tunnel may have no netmask; it is not attached to the whole Internet.
                network: Network::around(
                    address,
                    match prefix_bits {
                        0 => u8::MAX,
                        bits => bits,
                    },
                ),
            }
        });
        Ok(attached.collect())
    }
}

/// How an address relates to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressNearness {
    Own,
    OnLink,
    Elsewhere,
}

/// The interfaces, listed again once the last list is older than [`INTERFACES_TTL`].
#[derive(Debug)]
pub(crate) struct LocalNetworks {
    interfaces: Box<dyn InterfaceSource>,
    known: Mutex<Option<(Stopwatch, Vec<InterfaceAddress>)>>,
    clock: Arc<dyn Clock>,
}

impl LocalNetworks {
    pub(crate) fn new(interfaces: Box<dyn InterfaceSource>, clock: Arc<dyn Clock>) -> Self {
        Self {
            interfaces,
            known: Mutex::default(),
            clock,
        }
    }

    /// How `address` relates to this machine.
    ///
    /// # Errors
    /// If the interfaces cannot be listed: then no address is known to be elsewhere.
    pub(crate) fn nearness(&self, address: IpAddr) -> io::Result<AddressNearness> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known
            .as_ref()
            .is_none_or(|(since, _)| since.elapsed() > INTERFACES_TTL)
        {
            *known = Some((Stopwatch::start(&self.clock), self.interfaces.attached()?));
        }
        let attached = known.iter().flat_map(|(_, attached)| attached);
        let mut nearness = AddressNearness::Elsewhere;
        for one in attached {
            if one.address == address {
                return Ok(AddressNearness::Own);
            }
            if one.network.contains(address) {
                nearness = AddressNearness::OnLink;
            }
        }
        Ok(nearness)
    }
}
