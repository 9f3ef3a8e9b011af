//! The memory budget for connections: request bodies, unread answers, and buffers that grew. Each
//! owner may use a share of the process-wide budget, so one client cannot starve the others.
//! Nothing is queued: bytes that do not fit are refused, or waited for briefly.

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Body as _;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Each owner may use at most the budget divided by this.
const SHARES: u64 = 4;
/// IPv6 clients are grouped by this prefix, since one site has as many smaller networks as it
/// likes.
const SITE_BITS: u32 = 48;
/// How often a waiting task checks for room. Waking every waiter at each release would cost more.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The budget of the process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    max: u64,
    used: Mutex<BudgetUsage>,
}

#[derive(Debug, Default)]
struct BudgetUsage {
    all: u64,
    by_owner: HashMap<MemoryOwner, u64>,
}

/// The owner of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemoryOwner {
    /// A client's IPv4 address, or its IPv6 site.
    Address(IpAddr),
    /// A project, across all of its clients.
    Project(Arc<str>),
    /// Trusted proxies, which forward many clients: limited only by the whole budget.
    Proxies,
}

/// The budget has no room for more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitReached {
    /// The owner has reached its share.
    #[error("client has reached its share of the memory for connections")]
    Owner,
    /// The whole budget is in use.
    #[error("memory for connections is full")]
    All,
}

impl LimitReached {
    /// Finds this error in the source chain of `error`.
    pub(crate) fn within(error: &(dyn Error + 'static)) -> Option<Self> {
        sources(error).find_map(|error| error.downcast_ref().copied())
    }
}

/// `error` and its causes.
pub(crate) fn sources<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

impl MemoryOwner {
    /// The owner for the client at `address`.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Address(site_of(address))
    }
}

/// A client's IPv4 address, or the first address of its IPv6 site.
pub(crate) fn site_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let site = address.to_bits() >> (128 - SITE_BITS) << (128 - SITE_BITS);
            Ipv6Addr::from_bits(site).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl MemoryBudget {
    /// Creates a budget of `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        Self(Arc::new(BudgetState {
            max,
            used: Mutex::default(),
        }))
    }

    /// Takes `bytes` for `owner`; dropping the result returns them.
    fn try_reserve(&self, owner: &MemoryOwner, bytes: u64) -> Result<ReservedMemory, LimitReached> {
        let mut held = ReservedMemory {
            from: self.clone(),
            owner: owner.clone(),
            bytes: 0,
        };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Like [`Self::try_reserve`], but waits up to `patience` for room.
    pub(crate) async fn reserve(
        &self,
        owner: &MemoryOwner,
        bytes: u64,
        patience: Duration,
    ) -> Result<ReservedMemory, LimitReached> {
        // Polls instead of queueing: a queue would have to be fair among owners with different
        // shares, and a wake-up at each release would cost every answer more than a few waiting
        // tasks do.
        let waiting = async {
            loop {
                match self.try_reserve(owner, bytes) {
                    Err(_) => sleep(POLL_INTERVAL).await,
                    Ok(held) => return held,
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(held) => Ok(held),
            Err(_) => self.try_reserve(owner, bytes),
        }
    }

    /// Takes `bytes` for `owner` even if that exceeds the budget, for answers that can no longer be
    /// refused. Later requests have that much less room.
    fn force_reserve(&self, owner: &MemoryOwner, bytes: u64) -> ReservedMemory {
        self.lock().add(owner, bytes);
        ReservedMemory {
            from: self.clone(),
            owner: owner.clone(),
            bytes,
        }
    }

    /// Whether more than half of the budget, or of the share of `owner`, is in use.
    fn is_scarce(&self, owner: &MemoryOwner) -> bool {
        let used = self.lock();
        let own = used.by_owner.get(owner).copied().unwrap_or(0);
        used.all > self.0.max / 2 || own > self.share(owner) / 2
    }

    fn share(&self, owner: &MemoryOwner) -> u64 {
        match owner {
            MemoryOwner::Proxies => self.0.max,
            MemoryOwner::Address(_) | MemoryOwner::Project(_) => self.0.max / SHARES,
        }
    }

    fn add(&self, owner: &MemoryOwner, bytes: u64) -> Result<(), LimitReached> {
        let mut used = self.lock();
        if used.all.saturating_add(bytes) > self.0.max {
            return Err(LimitReached::All);
        }
        let own = used.by_owner.get(owner).copied().unwrap_or(0);
        if own.saturating_add(bytes) > self.share(owner) {
            return Err(LimitReached::Owner);
        }
        used.add(owner, bytes);
        Ok(())
    }

    fn release(&self, owner: &MemoryOwner, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut used = self.lock();
        used.all -= bytes;
        if let Some(own) = used.by_owner.get_mut(owner) {
            *own -= bytes;
            if *own == 0 {
                used.by_owner.remove(owner);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BudgetUsage> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use by all owners.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.lock().all
    }
}

impl BudgetUsage {
    fn add(&mut self, owner: &MemoryOwner, bytes: u64) {
        // Nothing would ever remove the entry of an owner with zero bytes.
        if bytes == 0 {
            return;
        }
        self.all += bytes;
        match self.by_owner.get_mut(owner) {
            Some(own) => *own += bytes,
            None => {
                self.by_owner.insert(owner.clone(), bytes);
            }
        }
    }
}

/// Bytes taken by an owner; dropping this returns them.
#[derive(Debug)]
pub(crate) struct ReservedMemory {
    from: MemoryBudget,
    owner: MemoryOwner,
    bytes: u64,
}

impl ReservedMemory {
    /// Takes `more` bytes.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), LimitReached> {
        self.from.add(&self.owner, more)?;
        self.bytes += more;
        Ok(())
    }

    /// Returns all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.from.release(&self.owner, less);
        self.bytes -= less;
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.from.release(&self.owner, self.bytes);
    }
}

/// A head, body or answer that counts for less than this, copies included, is free.
const FREE_BYTES: u64 = 16 * 1024;
/// Counted for a connection that reads more than that: hyper's buffer at its maximum, and the
/// smaller buffer it grew from.
const READING_BYTES: u64 = 128 * 1024;
/// Counted for a connection that writes more than that: hyper's buffer and one piece of a file.
const WRITING_BYTES: u64 = 128 * 1024;
/// Counted for each piece of a body on top of its bytes: a chunk may be a single byte.
const PIECE_BYTES: u64 = 64;
/// A body exists twice while it is parsed: its bytes and its fields.
const BODY_COPIES: u64 = 2;
/// How long an answer waits for memory.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection's memory. hyper's buffers never shrink, so their bytes stay reserved until it closes.
#[derive(Debug)]
pub(crate) struct ConnectionMemory {
    buffers: MemoryBudget,
    owner: MemoryOwner,
    reading: Mutex<Option<ReservedMemory>>,
    writing: Mutex<Option<ReservedMemory>>,
}

impl ConnectionMemory {
    pub(super) fn new(buffers: MemoryBudget, owner: MemoryOwner) -> Self {
        Self {
            buffers,
            owner,
            reading: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    /// Takes memory for a large head or body.
    pub(super) fn reserve_reading(&self) -> Result<(), LimitReached> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_none() {
            *reading = Some(self.buffers.try_reserve(&self.owner, READING_BYTES)?);
        }
        Ok(())
    }

    /// Takes memory for the answer to a request of `client`, unless its endpoint already has.
    pub(crate) async fn admit(
        &self,
        response: &mut Response,
        client: IpAddr,
    ) -> Result<(), LimitReached> {
        match bytes_wanted(response) {
            None => Ok(()),
            // Boxed: the timers of a wait would enlarge the future of every request.
            Some(bytes) => Box::pin(self.admit_large(bytes, response, client)).await,
        }
    }

    async fn admit_large(
        &self,
        bytes: u64,
        response: &mut Response,
        client: IpAddr,
    ) -> Result<(), LimitReached> {
        // hyper's buffer grows once and stays, so a connection pays for it once.
        if self.writing().is_none() {
            let room = self.buffers.reserve(&self.owner, WRITING_BYTES, PATIENCE);
            let room = room.await?;
            *self.writing() = Some(room);
        }
        if bytes > 0 {
            let owner = MemoryOwner::from_address(client);
            let room = self.buffers.reserve(&owner, bytes, PATIENCE);
            response.extensions_mut().insert(Arc::new(room.await?));
        }
        self.close_if_scarce(response);
        Ok(())
    }

    /// Like [`Self::admit`], for an answer that must be sent: its request has changed something.
    pub(crate) fn force_admit(&self, response: &mut Response, client: IpAddr) {
        let Some(bytes) = bytes_wanted(response) else {
            return;
        };
        self.writing()
            .get_or_insert_with(|| self.buffers.force_reserve(&self.owner, WRITING_BYTES));
        if bytes > 0 {
            let owner = MemoryOwner::from_address(client);
            let room = self.buffers.force_reserve(&owner, bytes);
            response.extensions_mut().insert(Arc::new(room));
        }
        self.close_if_scarce(response);
    }

    /// Closing the connection frees its grown buffers.
    fn close_if_scarce(&self, response: &mut Response) {
        if self.buffers.is_scarce(&self.owner) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
    }

    fn writing(&self) -> MutexGuard<'_, Option<ReservedMemory>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes in memory of a large answer that its endpoint has not already taken memory for; `None` for a
/// small one.
fn bytes_wanted(response: &Response) -> Option<u64> {
    if response.extensions().get::<GradualResponse>().is_some() {
        // Pieces are sent one at a time and mostly small: the limit on the number of such
        // answers is enough.
        return None;
    }
    let in_memory = in_memory(response.body());
    if in_memory.is_some_and(|bytes| bytes <= FREE_BYTES) {
        return None;
    }
    let has_room = response.extensions().get::<Arc<ReservedMemory>>().is_some();
    // A list takes its memory before it is read from the store, for its project; counting it
    // for the client as well would count it twice.
    Some(in_memory.filter(|_| !has_room).unwrap_or(0))
}

/// The length of an answer that is whole in memory. Files are read piece by piece.
pub(super) fn in_memory(body: &Body) -> Option<u64> {
    body.size_hint().exact()
}

/// The memory of a request's body, until the request is answered.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    connection: Arc<ConnectionMemory>,
    owner: MemoryOwner,
    reserved: Mutex<(u64, Option<ReservedMemory>)>,
}

impl BodyMemory {
    pub(super) fn new(connection: Arc<ConnectionMemory>, client: IpAddr) -> Self {
        Self {
            connection,
            owner: MemoryOwner::from_address(client),
            reserved: Mutex::default(),
        }
    }

    /// Takes memory for a piece of `bytes`.
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), LimitReached> {
        // Example: a body of 1 MB in pieces of 16 KB counts as 2 MB and 4 KB for the client, and
        // 128 KiB for the connection, whose buffers have grown. Bodies up to about 8 KiB count as
        // nothing: with their copies they stay below `FREE_BYTES`.
        let more = bytes as u64 * BODY_COPIES + PIECE_BYTES;
        let mut taken = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, held) = &mut *taken;
        *all += more;
        match held {
            Some(held) => held.grow(more),
            None if *all <= FREE_BYTES => Ok(()),
            None => {
                self.connection.reserve_reading()?;
                let room = self.connection.buffers.try_reserve(&self.owner, *all)?;
                *held = Some(room);
                Ok(())
            }
        }
    }

    /// Returns the memory of the bytes that have arrived: the request is answered, or its endpoint has
    /// written them to disk.
    pub(crate) fn release(&self) {
        *self.reserved.lock().unwrap_or_else(PoisonError::into_inner) = (0, None);
    }
}

/// The listener takes the next piece of such an answer only after it has sent the previous one. So
/// a slow client needs no memory, and does not delay a stop of the service.
#[derive(Clone, Debug)]
pub(crate) struct GradualResponse {
    /// Cancelled when the service stops.
    pub(crate) stopping: CancellationToken,
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn address(text: &str) -> MemoryOwner {
        MemoryOwner::from_address(text.parse().unwrap())
    }

    #[test]
    fn p15_an_owner_has_its_share_and_others_have_room() {
        let buffers = MemoryBudget::new(400);
        let one = address("192.0.2.1");
        let mut held = buffers.try_reserve(&one, 60).unwrap();
        held.grow(40).unwrap();
        assert_eq!(held.grow(1), Err(LimitReached::Owner));
        assert_eq!(
            buffers.try_reserve(&one, 1).unwrap_err(),
            LimitReached::Owner
        );
        let others: Vec<ReservedMemory> = (2..5)
            .map(|last| buffers.try_reserve(&address(&format!("192.0.2.{last}")), 100))
            .collect::<Result<_, _>>()
            .unwrap();
        let late = address("192.0.2.9");
        assert_eq!(
            buffers.try_reserve(&late, 1).unwrap_err(),
            LimitReached::All
        );
        held.shrink_to(30);
        assert_eq!(buffers.used(), 330);
        let _fits = buffers.try_reserve(&late, 70).unwrap();
        drop((held, others));
        assert_eq!(buffers.used(), 70);
        assert_eq!(
            buffers.lock().by_owner.len(),
            1,
            "who holds nothing is forgotten"
        );
    }

    #[test]
    fn p15_a_site_is_one_owner_and_proxies_have_no_share() {
        let buffers = MemoryBudget::new(400);
        let _held = buffers.try_reserve(&address("2001:db8:1::1"), 100).unwrap();
        let same_site = address("2001:db8:1:ffff::9");
        assert_eq!(
            buffers.try_reserve(&same_site, 1).unwrap_err(),
            LimitReached::Owner
        );
        assert!(buffers.try_reserve(&address("2001:db8:2::1"), 1).is_ok());
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        let rest = buffers.try_reserve(&MemoryOwner::Proxies, 300);
        assert!(rest.is_ok());
    }

    #[test]
    fn what_cannot_be_refused_counts_for_those_who_come_next() {
        let buffers = MemoryBudget::new(400);
        let one = address("192.0.2.1");
        let held = buffers.try_reserve(&one, 50).unwrap();
        assert!(!buffers.is_scarce(&one));
        let more = buffers.force_reserve(&one, 100);
        assert!(buffers.is_scarce(&one) && !buffers.is_scarce(&address("192.0.2.2")));
        assert_eq!(
            buffers.try_reserve(&one, 1).unwrap_err(),
            LimitReached::Owner
        );
        drop((held, more));
        drop(buffers.force_reserve(&one, 0));
        drop(buffers.try_reserve(&one, 0));
        assert_eq!(buffers.used(), 0);
        assert!(
            buffers.lock().by_owner.is_empty(),
            "nothing leaves no entry"
        );
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test measures in paused time"
    )]
    #[tokio::test(start_paused = true)]
    async fn room_is_waited_for_and_not_for_long() {
        let buffers = MemoryBudget::new(400);
        let (one, wait) = (address("192.0.2.1"), Duration::from_secs(2));
        let held = buffers.try_reserve(&one, 100).unwrap();
        let begun = Instant::now();
        let refused = buffers.reserve(&one, 1, wait).await;
        assert_eq!(refused.unwrap_err(), LimitReached::Owner);
        assert!(begun.elapsed() >= wait && begun.elapsed() < wait + POLL_INTERVAL);
        let (taken, ()) = tokio::join!(buffers.reserve(&one, 100, wait), async move {
            tokio::time::sleep(wait / 2).await;
            drop(held);
        });
        assert!(taken.is_ok());
    }
}

#[cfg(test)]
mod room_tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn room(buffers: &MemoryBudget) -> Arc<ConnectionMemory> {
        let owner = MemoryOwner::from_address(CLIENT);
        Arc::new(ConnectionMemory::new(buffers.clone(), owner))
    }

    #[test]
    fn p15_bodies_count_beyond_little_and_until_they_are_used() {
        let buffers = MemoryBudget::new(4 << 20);
        let connection = room(&buffers);
        let body = BodyMemory::new(connection.clone(), CLIENT);
        body.reserve(1000).unwrap();
        assert_eq!(buffers.used(), 0, "small bodies cost no more than before");
        body.reserve(100_000).unwrap();
        assert_eq!(buffers.used(), READING_BYTES + 202_128);
        assert_eq!(body.reserve(500_000), Err(LimitReached::Owner));
        body.release();
        assert_eq!(buffers.used(), READING_BYTES, "the buffers have grown");
        // As many as fit by their bytes alone: each has its own overhead.
        let pieces = (0..1_000_000)
            .take_while(|_| body.reserve(1).is_ok())
            .count();
        assert!(pieces < 16_000, "{pieces}");
        drop((body, connection));
        assert_eq!(buffers.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn p15_large_answers_count_until_they_are_dropped() {
        let buffers = MemoryBudget::new(4 << 20);
        let connection = room(&buffers);
        let answer = |bytes: usize| Response::new(Body::from(vec![0; bytes]));
        let mut small = answer(16 * 1024);
        assert_eq!(connection.admit(&mut small, CLIENT).await, Ok(()));
        assert_eq!(buffers.used(), 0);
        let mut large = answer(500_000);
        assert_eq!(connection.admit(&mut large, CLIENT).await, Ok(()));
        assert_eq!(buffers.used(), WRITING_BYTES + 500_000);
        let mut refused = answer(500_000);
        let full = connection.admit(&mut refused, CLIENT).await;
        assert_eq!(full, Err(LimitReached::Owner));
        // A request that has changed something is answered anyway.
        let mut given = answer(500_000);
        connection.force_admit(&mut given, CLIENT);
        assert_eq!(buffers.used(), WRITING_BYTES + 1_000_000);
        assert_eq!(given.headers()[header::CONNECTION], "close");
        drop((large, given));
        assert_eq!(connection.admit(&mut refused, CLIENT).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn p15_an_answer_has_the_room_that_its_endpoint_took() {
        let buffers = MemoryBudget::new(4 << 20);
        let project = MemoryOwner::Project("one".into());
        let held = buffers.try_reserve(&project, 20_000).unwrap();
        let mut page = Response::new(Body::from(vec![0; 20_000]));
        page.extensions_mut().insert(Arc::new(held));
        let connection = room(&buffers);
        assert_eq!(connection.admit(&mut page, CLIENT).await, Ok(()));
        assert_eq!(buffers.used(), WRITING_BYTES + 20_000);
    }
}
