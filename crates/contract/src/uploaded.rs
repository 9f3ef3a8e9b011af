//! How a reference names a file of this service: an uploaded one, or a picture of a result. In a request:
//! by an uploaded file's id, or by a signed address, which is recognised here and verified by the API. In a
//! spec: by the key of its bytes, which only the API writes, after it has checked the file; a request that
//! says so itself is refused as no URL.

use url::Url;

use crate::id::{FileId, TaskId};

/// A reference in a request, from OpenAI's object `{"file_id": ID}`.
const BY_ID: &str = "file_id:";
/// A reference in a spec, before the key of the bytes in the blob store.
const BY_KEY: &str = "upload:";

/// The reference of `{"file_id": id}`.
pub(crate) fn reference_by_id(id: &str) -> String {
    format!("{BY_ID}{id}")
}

/// The text sent as `file_id`, if `reference` is an object with one.
pub fn named_id(reference: &str) -> Option<&str> {
    reference.strip_prefix(BY_ID)
}

/// The reference of a spec to the bytes under `blob_key`.
#[must_use]
pub fn reference_by_key(blob_key: &str) -> String {
    format!("{BY_KEY}{blob_key}")
}

/// The key of the bytes in the blob store, if `reference`, of a spec, is to a file of this service.
pub fn blob_key(reference: &str) -> Option<&str> {
    reference.strip_prefix(BY_KEY)
}

/// The address of a file's bytes; `base_url` has no slash at its end, `query` is its signature.
#[must_use]
pub fn address(base_url: &str, id: FileId, query: &str) -> String {
    format!("{base_url}/v1/files/{id}/content?{query}")
}

/// What a [`ContentAddress`] leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressedContent {
    /// An uploaded file.
    File(FileId),
    /// A file of this task's result.
    Result(TaskId),
}

/// A URL with the path of a file's bytes, of this service or of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentAddress {
    /// What its path names.
    pub content: AddressedContent,
    /// The query, undecoded.
    pub query: String,
    url: Url,
}

impl ContentAddress {
    /// The address that `url` spells; `None` for any other URL.
    pub fn parse(url: &str) -> Option<Self> {
        // Cheap for nearly all URLs, which are of other servers.
        if !url.contains("/v1/") {
            return None;
        }
        let url = Url::parse(url).ok()?;
        // Before the path, the base URL may have one of its own.
        let (_, named) = url.path().strip_suffix("/content")?.rsplit_once("/v1/")?;
        let content = match named.split_once('/')? {
            ("files", id) => AddressedContent::File(id.parse().ok()?),
            ("videos", id) => AddressedContent::Result(id.parse().ok()?),
            _ => return None,
        };
        Some(Self {
            content,
            query: url.query().unwrap_or_default().to_owned(),
            url,
        })
    }

    /// Whether it is at the host and port of `base_url`.
    pub fn is_at(&self, base_url: &str) -> bool {
        let Ok(base) = Url::parse(base_url) else {
            return false;
        };
        let place = |url: &Url| {
            (
                url.host_str().map(str::to_owned),
                url.port_or_known_default(),
            )
        };
        place(&self.url) == place(&base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognised_behind_any_host_and_nothing_else_is() {
        let id = FileId::from_parts(1_760_000_000_000, [7; 10]);
        for base in ["https://example.com", "http://127.0.0.1:8080/kinora"] {
            let address = address(base, id, "expires=1&signature=ab");
            let parsed = ContentAddress::parse(&address).unwrap();
            let content = AddressedContent::File(id);
            assert_eq!(
                (parsed.content, &*parsed.query),
                (content, "expires=1&signature=ab")
            );
            assert!(parsed.is_at(base), "{address}");
            assert!(!parsed.is_at("https://example.org"), "{address}");
        }
        let host = format!("HTTPS://Example.COM:443/v1/files/{id}/content");
        let parsed = ContentAddress::parse(&host).unwrap();
        assert!(parsed.is_at("https://example.com") && parsed.query.is_empty());
        assert!(!parsed.is_at("http://example.com"));
        let task = TaskId::from_parts(1_760_000_000_000, [7; 10]);
        let still =
            format!("https://example.com/v1/videos/{task}/content?variant=last_frame&expires=1");
        let parsed = ContentAddress::parse(&still).unwrap();
        assert_eq!(parsed.content, AddressedContent::Result(task));
        assert_eq!(parsed.query, "variant=last_frame&expires=1");
        for other in [
            "https://example.com/v1/files/file_1/content".to_owned(),
            format!("https://example.com/v1/files/{task}/content"),
            format!("https://example.com/v1/files/{id}"),
            format!("https://example.com/v1/files/{id}/content/"),
            format!("https://example.com/v1/videos/{id}/content"),
            format!("https://example.com/?/v1/files/{id}/content"),
            format!("/v1/files/{id}/content"),
        ] {
            assert_eq!(ContentAddress::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn a_reference_of_a_spec_is_no_url_of_a_request() {
        let reference = reference_by_key("uploads/file_1");
        assert_eq!(blob_key(&reference), Some("uploads/file_1"));
        assert!(crate::reference_url::check(&reference, "first_frame").is_err());
        let named = reference_by_id("file_1");
        assert_eq!(named_id(&named), Some("file_1"));
        assert!(crate::reference_url::check(&named, "first_frame").is_err());
        assert_eq!(blob_key(&named).or(named_id(&reference)), None);
    }
}
