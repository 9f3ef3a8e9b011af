//! The memory that a connection and its requests take from the budget. A connection with little
//! traffic takes none: the limit on connections bounds its needs.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Body as _;

use crate::buffers::{Buffers, Full, Held, Owner};
use crate::gradual::Gradual;

/// The size below which a head, body or answer is not counted.
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

/// A connection's memory. Buffers never shrink, so what they count for stays taken.
#[derive(Debug)]
pub(crate) struct Room {
    buffers: Buffers,
    owner: Owner,
    reading: Mutex<Option<Held>>,
    writing: Mutex<Option<Held>>,
}

impl Room {
    pub(super) fn new(buffers: Buffers, owner: Owner) -> Self {
        Self {
            buffers,
            owner,
            reading: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    /// Takes memory for a large head or body.
    pub(super) fn read_much(&self) -> Result<(), Full> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_none() {
            *reading = Some(self.buffers.try_take(&self.owner, READING_BYTES)?);
        }
        Ok(())
    }

    /// Takes memory for the answer to a request of `client`, unless its endpoint already has.
    pub(crate) async fn admit(&self, response: &mut Response, client: IpAddr) -> Result<(), Full> {
        match Wanted::of(response) {
            None => Ok(()),
            // Boxed: the timers of a wait would enlarge the future of every request.
            Some(wanted) => Box::pin(self.admit_large(wanted, response, client)).await,
        }
    }

    async fn admit_large(
        &self,
        wanted: Wanted,
        response: &mut Response,
        client: IpAddr,
    ) -> Result<(), Full> {
        if !self.is_writing_much() {
            let room = self.buffers.take(&self.owner, WRITING_BYTES, PATIENCE);
            self.write_much(room.await?);
        }
        if wanted.bytes > 0 {
            let owner = Owner::of_address(client);
            let room = self.buffers.take(&owner, wanted.bytes, PATIENCE);
            response.extensions_mut().insert(Arc::new(room.await?));
        }
        self.close_if_scarce(response);
        Ok(())
    }

    /// Like [`Self::admit`], for an answer that must be sent: its request has changed something.
    pub(crate) fn admit_anyway(&self, response: &mut Response, client: IpAddr) {
        let Some(wanted) = Wanted::of(response) else {
            return;
        };
        if !self.is_writing_much() {
            self.write_much(self.buffers.take_anyway(&self.owner, WRITING_BYTES));
        }
        if wanted.bytes > 0 {
            let owner = Owner::of_address(client);
            let room = self.buffers.take_anyway(&owner, wanted.bytes);
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

    fn is_writing_much(&self) -> bool {
        self.writing().is_some()
    }

    fn write_much(&self, room: Held) {
        *self.writing() = Some(room);
    }

    fn writing(&self) -> MutexGuard<'_, Option<Held>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory for a large answer.
struct Wanted {
    /// Bytes in memory that its endpoint has not already taken memory for.
    bytes: u64,
}

impl Wanted {
    fn of(response: &Response) -> Option<Self> {
        if response.extensions().get::<Gradual>().is_some() {
            // Pieces are sent one at a time and mostly small: the limit on the number of such
            // answers is enough.
            return None;
        }
        let in_memory = in_memory(response.body());
        if in_memory.is_some_and(|bytes| bytes <= FREE_BYTES) {
            return None;
        }
        let has_room = response.extensions().get::<Arc<Held>>().is_some();
        let bytes = in_memory.filter(|_| !has_room).unwrap_or(0);
        Some(Self { bytes })
    }
}

/// The length of an answer that is whole in memory. Files are read piece by piece.
pub(super) fn in_memory(body: &Body) -> Option<u64> {
    body.size_hint().exact()
}

/// The memory of a request's body, until the request is answered.
#[derive(Debug)]
pub(super) struct BodyRoom {
    connection: Arc<Room>,
    owner: Owner,
    taken: Mutex<(u64, Option<Held>)>,
}

impl BodyRoom {
    pub(super) fn new(connection: Arc<Room>, client: IpAddr) -> Self {
        Self {
            connection,
            owner: Owner::of_address(client),
            taken: Mutex::default(),
        }
    }

    /// Takes memory for a piece of `bytes`.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Full> {
        let more = bytes as u64 * BODY_COPIES + PIECE_BYTES;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, held) = &mut *taken;
        *all += more;
        match held {
            Some(held) => held.grow(more),
            None if *all <= FREE_BYTES => Ok(()),
            None => {
                self.connection.read_much()?;
                let room = self.connection.buffers.try_take(&self.owner, *all)?;
                *held = Some(room);
                Ok(())
            }
        }
    }

    /// Returns the body's memory once the request is answered.
    pub(super) fn give_back(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn room(buffers: &Buffers) -> Arc<Room> {
        let owner = Owner::of_address(CLIENT);
        Arc::new(Room::new(buffers.clone(), owner))
    }

    #[test]
    fn p15_bodies_count_beyond_little_and_until_they_are_used() {
        let buffers = Buffers::new(4 << 20);
        let connection = room(&buffers);
        let body = BodyRoom::new(connection.clone(), CLIENT);
        body.take(1000).unwrap();
        assert_eq!(buffers.used(), 0, "small bodies cost no more than before");
        body.take(100_000).unwrap();
        assert_eq!(buffers.used(), READING_BYTES + 202_128);
        assert_eq!(body.take(500_000), Err(Full::Owner));
        body.give_back();
        assert_eq!(buffers.used(), READING_BYTES, "the buffers have grown");
        // As many as fit by their bytes alone: each has its own overhead.
        let pieces = (0..1_000_000).take_while(|_| body.take(1).is_ok()).count();
        assert!(pieces < 16_000, "{pieces}");
        drop((body, connection));
        assert_eq!(buffers.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn p15_large_answers_count_until_they_are_dropped() {
        let buffers = Buffers::new(4 << 20);
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
        assert_eq!(full, Err(Full::Owner));
        // A request that has changed something is answered anyway.
        let mut given = answer(500_000);
        connection.admit_anyway(&mut given, CLIENT);
        assert_eq!(buffers.used(), WRITING_BYTES + 1_000_000);
        assert_eq!(given.headers()[header::CONNECTION], "close");
        drop((large, given));
        assert_eq!(connection.admit(&mut refused, CLIENT).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn p15_an_answer_has_the_room_that_its_endpoint_took() {
        let buffers = Buffers::new(4 << 20);
        let project = Owner::Project("one".into());
        let held = buffers.try_take(&project, 20_000).unwrap();
        let mut page = Response::new(Body::from(vec![0; 20_000]));
        page.extensions_mut().insert(Arc::new(held));
        let connection = room(&buffers);
        assert_eq!(connection.admit(&mut page, CLIENT).await, Ok(()));
        assert_eq!(buffers.used(), WRITING_BYTES + 20_000);
    }
}
