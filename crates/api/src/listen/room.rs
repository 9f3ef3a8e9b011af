//! The room that a connection and its requests take of the memory for connections. A connection
//! that carries little takes none: what it needs then is bounded by the number of connections.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Body as _;

use crate::buffers::{Buffers, Full, Held, Owner};

/// What a head, a body or an answer may have without counting.
pub(super) const FREE_BYTES: u64 = 16 * 1024;
/// What reading more than that may make of a connection's buffers: hyper's, grown to its bound,
/// and what a head was read into before it grew.
const READING_BYTES: u64 = 128 * 1024;
/// What writing more than that may make of them: hyper's, and one piece of a file.
const WRITING_BYTES: u64 = 128 * 1024;
/// Counted for each piece of a body beside its bytes: chunks may be as small as one byte.
const PIECE_BYTES: u64 = 64;
/// A body is there twice while it is read: its bytes, and the fields made of them.
const BODY_COPIES: u64 = 2;
/// How long an answer waits for room.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection's room. Once its buffers have grown they stay, and so does what they count for.
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

    /// For a head or a body that does not come in little.
    pub(super) fn read_much(&self) -> Result<(), Full> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_none() {
            *reading = Some(self.buffers.try_take(&self.owner, READING_BYTES)?);
        }
        Ok(())
    }

    /// Takes room for the answer to a request of `client`, unless its endpoint has.
    pub(crate) async fn admit(&self, response: &mut Response, client: IpAddr) -> Result<(), Full> {
        match Wanted::of(response) {
            None => Ok(()),
            // Apart: the timers of a wait would make the future of every request large.
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

    /// The same for an answer that must be given: its request has changed something.
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

    /// Buffers that have grown go with their connection.
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

/// What an answer wants that is not small.
struct Wanted {
    /// Bytes that are in memory, unless its endpoint has taken room for them.
    bytes: u64,
}

impl Wanted {
    fn of(response: &Response) -> Option<Self> {
        let in_memory = in_memory(response.body());
        if in_memory.is_some_and(|bytes| bytes <= FREE_BYTES) {
            return None;
        }
        let has_room = response.extensions().get::<Arc<Held>>().is_some();
        let bytes = in_memory.filter(|_| !has_room).unwrap_or(0);
        Some(Self { bytes })
    }
}

/// The bytes of an answer that is in memory whole. What comes from a file is read piece by piece.
pub(super) fn in_memory(body: &Body) -> Option<u64> {
    body.size_hint().exact()
}

/// What a request's body takes, until the request is answered.
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

    /// Takes room for a piece of `bytes`.
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

    /// The body is used up: the request is answered.
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
        // As many as fit by their bytes alone: each single one has its own cost.
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
        // What has changed something is answered all the same.
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
