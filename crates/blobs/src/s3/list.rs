//! Lists a bucket in pages. Objects whose names are not keys, such as those of probes, are skipped.

use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use object_store::ObjectMeta;
use object_store::list::{PaginatedListOptions, PaginatedListStore};

use super::bucket::Bucket;
use super::error::unavailable;
use crate::{BlobEntry, BlobError, BlobKey, EntryStream, PAGE_MAX};

/// Position in a listing.
enum PageCursor {
    Begin,
    After(String),
    End,
}

/// All entries whose keys begin with `prefix`.
pub(super) fn pages(bucket: Arc<Bucket>, prefix: &str) -> EntryStream {
    let prefix = format!("{}{prefix}", bucket.address.prefix);
    let pages = stream::try_unfold(PageCursor::Begin, move |cursor| {
        let (bucket, prefix) = (bucket.clone(), prefix.clone());
        async move { page(&bucket, &prefix, cursor).await }
    });
    Box::pin(full(pages))
}

/// Skips a page that contains only foreign names.
fn full(
    pages: impl Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send,
) -> impl Stream<Item = Result<Vec<BlobEntry>, BlobError>> + Send {
    pages.filter(|page| {
        let is_empty = matches!(page, Ok(page) if page.is_empty());
        async move { !is_empty }
    })
}

async fn page(
    bucket: &Bucket,
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
    let entries = objects.filter_map(|object| entry(own, object)).collect();
    let next = listed.page_token.map_or(PageCursor::End, PageCursor::After);
    Ok(Some((entries, next)))
}

fn entry(prefix: &str, object: &ObjectMeta) -> Option<BlobEntry> {
    let key = object.location.as_ref().strip_prefix(prefix)?;
    BlobKey::parse(key).ok()?;
    Some(BlobEntry {
        key: key.to_owned(),
        bytes: object.size,
        modified_at_ms: u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0),
    })
}
