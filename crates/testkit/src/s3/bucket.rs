//! One bucket in memory, as S3 describes it: an object appears whole, after the hash of its body was
//! checked, and a create-only put never replaces one, unless the bucket ignores that, as Garage does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectInput, DeleteObjectOutput, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput,
    HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, Metadata, Object, PutObjectInput,
    PutObjectOutput, StreamingBlob, Timestamp, UploadPartInput, UploadPartOutput,
};
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};
use sha2::{Digest, Sha256};

/// The only bucket.
pub(crate) const NAME: &str = "films";
/// S3's bound of all parts but the last.
const PART_BYTES_MIN: usize = 5 << 20;

/// A bucket; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    ignores_create_only: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Stored>,
    uploads: BTreeMap<String, Upload>,
    uploads_begun: u64,
}

#[derive(Clone, Debug)]
struct Stored {
    bytes: Bytes,
    metadata: Option<Metadata>,
    modified: Timestamp,
}

#[derive(Debug, Default)]
struct Upload {
    metadata: Option<Metadata>,
    parts: BTreeMap<i32, Bytes>,
}

impl Stored {
    fn new(bytes: Bytes, metadata: Option<Metadata>) -> Self {
        Self {
            bytes,
            metadata,
            modified: now(),
        }
    }

    fn etag(&self) -> ETag {
        ETag::Strong(hex(&Sha256::digest(&self.bytes)))
    }
}

impl Bucket {
    pub(crate) fn ignore_create_only(&self) {
        self.0.ignores_create_only.store(true, Ordering::Relaxed);
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    pub(crate) fn uploads(&self) -> usize {
        self.state().uploads.len()
    }

    pub(crate) fn object(&self, key: &str) -> Option<Bytes> {
        let state = self.state();
        state.objects.get(key).map(|object| object.bytes.clone())
    }

    /// Puts an object without metadata, as another program does.
    pub(crate) fn put(&self, key: &str, bytes: Bytes) {
        let object = Stored::new(bytes, None);
        self.state().objects.insert(key.to_owned(), object);
    }

    /// Changes a byte of an object, as a bad disk does.
    pub(crate) fn damage(&self, key: &str) {
        let mut state = self.state();
        let object = state.objects.get_mut(key).unwrap();
        let mut bytes = object.bytes.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        object.bytes = bytes.into();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, bucket: &str, key: &str) -> S3Result<Stored> {
        check(bucket)?;
        let found = self.state().objects.get(key).cloned();
        found.ok_or_else(|| s3_error!(NoSuchKey))
    }
}

fn check(bucket: &str) -> S3Result<()> {
    if bucket == NAME {
        return Ok(());
    }
    Err(s3_error!(NoSuchBucket))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The whole body, whose SHA-256 must be `checksum`, in Base64, where it is given.
async fn whole(body: Option<StreamingBlob>, checksum: Option<&String>) -> S3Result<Bytes> {
    let mut body = body.ok_or_else(|| s3_error!(IncompleteBody))?;
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk.map_err(|_| s3_error!(IncompleteBody))?);
    }
    let hash = base64(&Sha256::digest(&bytes));
    if checksum.is_some_and(|checksum| *checksum != hash) {
        return Err(s3_error!(BadDigest));
    }
    Ok(bytes.freeze())
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() {
                letter.into()
            } else {
                '='
            });
        }
    }
    text
}

#[allow(clippy::disallowed_methods, reason = "a server has its own clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

fn length(bytes: &Bytes) -> Option<i64> {
    i64::try_from(bytes.len()).ok()
}

#[async_trait]
impl S3 for Bucket {
    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let found = self.find(&input.bucket, &input.key)?;
        let all = found.bytes.len();
        let (mut bytes, mut content_range) = (found.bytes.clone(), None);
        if let Some(range) = input.range {
            let part = range.check(all as u64)?;
            bytes = bytes.slice(part.start as usize..part.end as usize);
            content_range = Some(format!("bytes {}-{}/{all}", part.start, part.end - 1));
        }
        Ok(S3Response::new(GetObjectOutput {
            content_length: length(&bytes),
            body: Some(StreamingBlob::from(Body::from(bytes))),
            content_range,
            accept_ranges: Some("bytes".to_owned()),
            e_tag: Some(found.etag()),
            last_modified: Some(found.modified.clone()),
            metadata: found.metadata,
            content_type: input.response_content_type,
            content_disposition: input.response_content_disposition,
            cache_control: input.response_cache_control,
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let found = self.find(&request.input.bucket, &request.input.key)?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: length(&found.bytes),
            e_tag: Some(found.etag()),
            last_modified: Some(found.modified.clone()),
            metadata: found.metadata,
            ..HeadObjectOutput::default()
        }))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        check(&input.bucket)?;
        let bytes = whole(input.body, input.checksum_sha256.as_ref()).await?;
        let creates =
            input.if_none_match.is_some() && !self.0.ignores_create_only.load(Ordering::Relaxed);
        let mut state = self.state();
        if creates && state.objects.contains_key(&input.key) {
            return Err(s3_error!(PreconditionFailed));
        }
        let object = Stored::new(bytes, input.metadata);
        let e_tag = Some(object.etag());
        state.objects.insert(input.key, object);
        Ok(S3Response::new(PutObjectOutput {
            e_tag,
            ..PutObjectOutput::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        check(&request.input.bucket)?;
        self.state().objects.remove(&request.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        check(&input.bucket)?;
        let prefix = input.prefix.unwrap_or_default();
        let after = input.continuation_token.or(input.start_after);
        let after = after.unwrap_or_default();
        let max = usize::try_from(input.max_keys.unwrap_or(1000)).unwrap_or(0);
        let state = self.state();
        let rest = state.objects.iter();
        let mut rest = rest.filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let contents: Vec<Object> = rest
            .by_ref()
            .take(max)
            .map(|(key, object)| Object {
                key: Some(key.clone()),
                size: length(&object.bytes),
                last_modified: Some(object.modified.clone()),
                ..Object::default()
            })
            .collect();
        let last = contents.last().and_then(|object| object.key.clone());
        let more = rest.next().is_some();
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            is_truncated: Some(more),
            next_continuation_token: last.filter(|_| more),
            contents: Some(contents),
            ..ListObjectsV2Output::default()
        }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = request.input;
        check(&input.bucket)?;
        let mut state = self.state();
        state.uploads_begun += 1;
        let id = format!("upload-{}", state.uploads_begun);
        let upload = Upload {
            metadata: input.metadata,
            ..Upload::default()
        };
        state.uploads.insert(id.clone(), upload);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id: Some(id),
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..CreateMultipartUploadOutput::default()
        }))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let input = request.input;
        let bytes = whole(input.body, input.checksum_sha256.as_ref()).await?;
        let e_tag = Some(ETag::Strong(hex(&Sha256::digest(&bytes))));
        let mut state = self.state();
        let upload = state.uploads.get_mut(&input.upload_id);
        let upload = upload.ok_or_else(|| s3_error!(NoSuchUpload))?;
        upload.parts.insert(input.part_number, bytes);
        Ok(S3Response::new(UploadPartOutput {
            e_tag,
            checksum_sha256: input.checksum_sha256,
            ..UploadPartOutput::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        let mut state = self.state();
        let upload = state.uploads.remove(&input.upload_id);
        let upload = upload.ok_or_else(|| s3_error!(NoSuchUpload))?;
        let sizes: Vec<usize> = upload.parts.values().map(Bytes::len).collect();
        let but_last = sizes.split_last().map_or(&[][..], |(_, others)| others);
        if but_last.iter().any(|size| *size < PART_BYTES_MIN) {
            return Err(s3_error!(EntityTooSmall));
        }
        let all: Vec<u8> = upload.parts.into_values().flatten().collect();
        let object = Stored::new(all.into(), upload.metadata);
        let e_tag = Some(object.etag());
        state.objects.insert(input.key.clone(), object);
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag,
            ..CompleteMultipartUploadOutput::default()
        }))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let removed = self.state().uploads.remove(&request.input.upload_id);
        removed.ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
