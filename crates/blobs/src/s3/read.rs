//! Streams an object in chunks, measures objects, and lists a bucket in pages. A whole object is
//! compared with the hash in its metadata: if it differs, the last chunk is an error instead.
//! Objects whose names are not keys are skipped.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Fuse};
use futures_util::{Stream, StreamExt, TryStreamExt};
use kinora_contract::{StoredFile, hex};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore};
use sha2::{Digest, Sha256};

use super::bucket::{ObjectHead, S3Bucket, failure, sha256, status, unavailable};
use super::http::CHUNK_BYTES;
use crate::{BlobEntry, BlobError, BlobKey, ByteStream, EntryStream, PAGE_MAX};

/// The answer of servers to a range after the end.
const RANGE_NOT_SATISFIABLE: u16 = 416;

type ObjectStream = Fuse<stream::BoxStream<'static, object_store::Result<Bytes>>>;

/// The bytes of the object in `range`, cut at its end.
pub(super) async fn read(
    bucket: &S3Bucket,
    key: &str,
    range: Range<u64>,
) -> Result<ByteStream, BlobError> {
    let path = bucket.path(key)?;
    if range.is_empty() {
        return nothing(bucket, key).await;
    }
    let asked = match (range.start, range.end) {
        (0, u64::MAX) => None,
        (start, u64::MAX) => Some(GetRange::Offset(start)),
        _ => Some(GetRange::Bounded(range)),
    };
    let options = GetOptions::new().with_range(asked);
    match bucket.store.get_opts(&path, options).await {
        Ok(found) => Ok(chunks(found)),
        // A range behind the end is empty here, as in the local store; S3 makes it an error.
        Err(error) if status(&error) == Some(RANGE_NOT_SATISFIABLE) => nothing(bucket, key).await,
        Err(error) => Err(failure(key, &error)),
    }
}

/// No bytes of an existing object.
async fn nothing(bucket: &S3Bucket, key: &str) -> Result<ByteStream, BlobError> {
    match bucket.read_head(key).await? {
        Some(_) => Ok(Box::pin(stream::empty())),
        None => Err(BlobError::NotFound(key.to_owned())),
    }
}

fn chunks(found: GetResult) -> ByteStream {
    let is_whole = found.range == (0..found.meta.size);
    // A range has no hash to compare with.
    let wanted = sha256(&found.attributes).filter(|_| is_whole);
    let reader = ChunkReader {
        pieces: found.into_stream().fuse(),
        rest: Bytes::new(),
        held: None,
        check: wanted.map(|wanted| (Sha256::new(), wanted)),
    };
    Box::pin(stream::try_unfold(reader, ChunkReader::next))
}

struct ChunkReader {
    pieces: ObjectStream,
    /// The rest of a piece that is longer than a chunk.
    rest: Bytes,
    /// The next chunk, held back until it is known whether it is the last.
    held: Option<Bytes>,
    check: Option<(Sha256, String)>,
}

impl ChunkReader {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        loop {
            let Some(chunk) = self.pull().await? else {
                self.verify()?;
                return Ok(self.held.take().map(|last| (last, self)));
            };
            if let Some((hash, _)) = &mut self.check {
                hash.update(&chunk);
            }
            // One chunk behind: the last one is handed out only after the hash of the whole
            // object was checked, so a client never sees a complete but wrong body.
            if let Some(given) = self.held.replace(chunk) {
                return Ok(Some((given, self)));
            }
        }
    }

    async fn pull(&mut self) -> io::Result<Option<Bytes>> {
        while self.rest.is_empty() {
            match self.pieces.next().await {
                Some(piece) => self.rest = piece.map_err(|error| unavailable(&error))?,
                None => return Ok(None),
            }
        }
        let length = self.rest.len().min(CHUNK_BYTES);
        Ok(Some(self.rest.split_to(length)))
    }

    fn verify(&mut self) -> io::Result<()> {
        let Some((hash, wanted)) = self.check.take() else {
            return Ok(());
        };
        if hex::text(&hash.finalize()) != wanted {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "S3 returned other bytes than were put",
            ));
        }
        Ok(())
    }
}

/// `None` for an unknown key.
pub(super) async fn checksum(
    bucket: &S3Bucket,
    key: &str,
) -> Result<Option<StoredFile>, BlobError> {
    let Some(ObjectHead { bytes, sha256 }) = bucket.read_head(key).await? else {
        return Ok(None);
    };
    let key = key.to_owned();
    if let Some(sha256) = sha256 {
        return Ok(Some(StoredFile { key, bytes, sha256 }));
    }
    match measure(bucket, &key).await {
        Ok((bytes, sha256)) => Ok(Some(StoredFile { key, bytes, sha256 })),
        Err(BlobError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the object to its end.
async fn measure(bucket: &S3Bucket, key: &str) -> Result<(u64, String), BlobError> {
    let mut chunks = read(bucket, key, 0..u64::MAX).await?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    while let Some(chunk) = chunks.try_next().await? {
        hash.update(&chunk);
        bytes += chunk.len() as u64;
    }
    Ok((bytes, hex::text(&hash.finalize())))
}

/// Position in a listing.
enum PageCursor {
    Begin,
    After(String),
    End,
}

/// All entries whose keys begin with `prefix`.
pub(super) fn pages(bucket: Arc<S3Bucket>, prefix: &str) -> EntryStream {
    let prefix = format!("{}{prefix}", bucket.address.prefix);
    let pages = stream::try_unfold(PageCursor::Begin, move |cursor| {
        let (bucket, prefix) = (bucket.clone(), prefix.clone());
        async move { page(&bucket, &prefix, cursor).await }
    });
    Box::pin(skip_empty_pages(pages))
}

/// Skips a page that contains only foreign names.
fn skip_empty_pages(
    pages: impl Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send,
) -> impl Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send {
    pages.filter(|page| {
        let is_empty = matches!(page, Ok(page) if page.is_empty());
        async move { !is_empty }
    })
}

async fn page(
    bucket: &S3Bucket,
    prefix: &str,
    cursor: PageCursor,
) -> Result<Option<(Vec<BlobEntry>, PageCursor)>, BlobError> {
    let page_token = match cursor {
        PageCursor::Begin => None,
        PageCursor::After(token) => Some(token),
        PageCursor::End => return Ok(None),
    };
    let options = PaginatedListOptions {
        max_keys: Some(PAGE_MAX),
        page_token,
        ..PaginatedListOptions::default()
    };
    // `None`, and not an empty prefix, asks for everything.
    let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
    let listed = bucket.store.list_paginated(prefix, options).await;
    let listed = listed.map_err(|error| unavailable(&error))?;
    let own = &bucket.address.prefix;
    let objects = listed.result.objects.iter();
    let entries = objects
        .filter_map(|object| blob_entry(own, object))
        .collect();
    let next = listed.page_token.map_or(PageCursor::End, PageCursor::After);
    Ok(Some((entries, next)))
}

fn blob_entry(prefix: &str, object: &ObjectMeta) -> Option<BlobEntry> {
    let key = object.location.as_ref().strip_prefix(prefix)?;
    BlobKey::parse(key).ok()?;
    Some(BlobEntry {
        key: key.to_owned(),
        bytes: object.size,
        modified_at_ms: u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0),
    })
}
