//! Streams a file in chunks. Each chunk is read when the previous one was taken, by a thread of the
//! reading pool, so slow readers never hold a thread.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use kinora_pool::Pool;

use crate::ByteStream;

/// Bytes that a reader gets at once: the memory of a stalled download.
const CHUNK_BYTES: usize = 32 * 1024;

/// The bytes of `file` in `range`, cut at its end.
pub(super) fn chunks(file: File, range: Range<u64>, pool: Pool) -> ByteStream {
    let file = Arc::new(file);
    let chunks = stream::try_unfold(range, move |rest| {
        let (file, pool) = (file.clone(), pool.clone());
        async move {
            let length = rest.end.saturating_sub(rest.start);
            let length = usize::try_from(length).map_or(CHUNK_BYTES, |all| all.min(CHUNK_BYTES));
            if length == 0 {
                return Ok(None);
            }
            let start = rest.start;
            let chunk = pool.run(move || chunk_at(&file, start, length)).await??;
            let next = start + chunk.len() as u64;
            Ok((!chunk.is_empty()).then_some((chunk, next..rest.end)))
        }
    });
    Box::pin(chunks)
}

/// Reads up to `length` bytes; none at the end of the file.
fn chunk_at(file: &File, start: u64, length: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; length];
    loop {
        match file.read_at(&mut bytes, start) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes.into());
            }
        }
    }
}
