//! Streams a file in chunks, and lists the files under a prefix. No stream or list holds a thread
//! while its consumer is slow.

use std::fs::{self, DirEntry, File, ReadDir};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures_util::stream;
use kinora_system::pool::BlockingPool;

use super::folders::StoreFolders;
use super::publish::{blocking, is_absent};
use crate::{BlobEntry, BlobError, BlobKey, ByteStream, EntryStream, PAGE_MAX};

/// Bytes that a reader gets at once: the memory of a stalled download.
const CHUNK_BYTES: usize = 32 * 1024;

/// The bytes of `file` in `range`, cut at its end.
pub(super) fn chunks(file: File, range: Range<u64>, pool: BlockingPool) -> ByteStream {
    let file = Arc::new(file);
    let chunks = stream::try_unfold(range, move |rest| {
        // A thread of the pool is taken for each chunk and given back at once: a client that
        // reads slowly holds 32 KiB of memory and no thread.
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
        // Positioned reads: the open file keeps the bytes readable after a delete, and needs no
        // shared cursor.
        match file.read_at(&mut bytes, start) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes.into());
            }
        }
    }
}

/// The blobs in `folders` whose keys begin with `prefix`.
pub(super) fn pages(folders: Arc<StoreFolders>, prefix: String, pool: BlockingPool) -> EntryStream {
    let begun = ListWalk {
        folders,
        prefix,
        open: None,
        #[cfg(test)]
        opened: 0,
    };
    Box::pin(stream::try_unfold(begun, move |mut walk| {
        let pool = pool.clone();
        async move {
            let page = blocking(&pool, move || Ok((walk.page()?, walk))).await?;
            Ok::<_, BlobError>((!page.0.is_empty()).then_some(page))
        }
    }))
}

/// The position of a listing.
struct ListWalk {
    folders: Arc<StoreFolders>,
    prefix: String,
    /// The open folders, innermost last; `None` before the first page.
    open: Option<Vec<OpenFolder>>,
    /// Number of folders opened.
    #[cfg(test)]
    opened: usize,
}

/// An open folder.
struct OpenFolder {
    /// Its key with a trailing slash; empty for the outermost.
    at: String,
    entries: ReadDir,
}

impl ListWalk {
    /// The next blobs; empty at the end.
    fn page(&mut self) -> Result<Vec<BlobEntry>, BlobError> {
        // The stack of open folders is the position of the listing. It is taken out and put back
        // only at the end of a page, so a page that fails ends the listing.
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                self.folders.check_mounted()?;
                let all = folder(&self.folders.objects, String::new())?;
                all.into_iter().collect()
            }
        };
        let mut found = Vec::new();
        while let Some(innermost) = open.last_mut() {
            if found.len() == PAGE_MAX {
                break;
            }
            let Some(entry) = innermost.entries.next() else {
                open.pop();
                continue;
            };
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let key = format!("{}{name}", innermost.at);
            let is_folder = match entry.file_type() {
                Err(error) if is_absent(&error) => continue,
                kind => kind?.is_dir(),
            };
            if !is_folder {
                if key.starts_with(&self.prefix) {
                    found.extend(blob(key, &entry)?);
                }
                continue;
            }
            let at = key + "/";
            // Below the prefix, or on the way to it: for the prefix `b/x`, the folder `b/` is
            // opened too.
            if at.starts_with(&self.prefix) || self.prefix.starts_with(&at) {
                open.extend(folder(&entry.path(), at)?);
                #[cfg(test)]
                {
                    self.opened += 1;
                }
            }
        }
        self.open = Some(open);
        Ok(found)
    }
}

/// Opens the folder; `None` if it was deleted meanwhile.
fn folder(path: &Path, at: String) -> io::Result<Option<OpenFolder>> {
    match fs::read_dir(path) {
        Err(error) if is_absent(&error) => Ok(None),
        entries => Ok(Some(OpenFolder {
            at,
            entries: entries?,
        })),
    }
}

fn blob(key: String, entry: &DirEntry) -> Result<Option<BlobEntry>, BlobError> {
    let data = match entry.metadata() {
        Err(error) if is_absent(&error) => return Ok(None),
        data => data?,
    };
    if BlobKey::parse(&key).is_err() || !data.is_file() {
        return Ok(None);
    }
    let age = data
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let modified_at_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Ok(Some(BlobEntry {
        key,
        bytes: data.len(),
        modified_at_ms,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_read_once_however_many_pages_there_are() {
        const FOLDERS: usize = 20;
        let root = tempfile::tempdir().unwrap();
        for number in 0..FOLDERS {
            let folder = root.path().join(format!("objects/videos/{number}"));
            fs::create_dir_all(&folder).unwrap();
            for file in 0..2 * PAGE_MAX / FOLDERS {
                fs::write(folder.join(file.to_string()), "").unwrap();
            }
        }
        let mut walk = ListWalk {
            folders: Arc::new(StoreFolders::new(root.path())),
            prefix: "videos/".to_owned(),
            open: None,
            opened: 0,
        };
        let pages = [(); 3].map(|()| walk.page().unwrap().len());
        assert_eq!(pages, [PAGE_MAX, PAGE_MAX, 0]);
        // Plus the outermost one.
        assert_eq!(walk.opened, FOLDERS + 1);
    }
}
