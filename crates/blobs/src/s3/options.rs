//! The location of the bucket, and the access to it: parses the URL and the settings, and creates
//! the client.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use object_store::aws::{
    AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsCredentialProvider, Checksum, S3ConditionalPut,
};
use object_store::{BackoffConfig, RetryConfig};
use url::Url;

use super::http::Http;
use crate::BlobError;

/// Number of retries of one request, and the time after which no more begin: in a longer outage the
/// caller decides whether to go on.
const RETRIES: usize = 2;
const RETRY_TIME: Duration = Duration::from_secs(5);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const PATIENCE_DEFAULT: Duration = Duration::from_secs(20);
/// The region if neither the settings nor the variables name one.
const REGION: &str = "us-east-1";
/// Variables with credentials or the way to them, as in AWS's own programs.
const CREDENTIALS: [&str; 11] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_METADATA_ENDPOINT",
];
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Settings of an S3 store besides its URL.
#[derive(Clone, Debug)]
pub struct S3Options {
    /// The server: `https://s3.example.com`. Empty: AWS.
    pub endpoint: String,
    /// The same server as clients reach it, for direct URLs. Empty: `endpoint`.
    pub public_endpoint: String,
    /// The region. Empty: that in the variables `AWS_REGION` and `AWS_DEFAULT_REGION`, or
    /// `us-east-1`.
    pub region: String,
    /// Whether the bucket follows the host of `endpoint`, instead of being a part of its name. For
    /// AWS itself the bucket is always part of the host name, unless it contains a dot.
    pub path_style: bool,
    /// Whether `endpoint` may be an `http:` URL: requests are signed, but anyone on the network
    /// path can read them.
    pub allow_http: bool,
    /// PEM file with certificates of authorities to trust besides the public ones. It is read once, at the opening.
    pub ca_file: Option<PathBuf>,
    /// Credentials.
    pub variables: S3Variables,
    /// Maximum time until an answer begins, and between two pieces of it; longer for requests of
    /// several megabytes.
    pub patience: Duration,
}

/// AWS without credentials.
impl Default for S3Options {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            public_endpoint: String::new(),
            region: String::new(),
            path_style: true,
            allow_http: false,
            ca_file: None,
            variables: S3Variables::default(),
            patience: PATIENCE_DEFAULT,
        }
    }
}

/// The variables that S3 clients read. Values are never shown, not even by `Debug`.
#[derive(Clone, Default)]
pub struct S3Variables(Vec<(&'static str, String)>);

impl S3Variables {
    /// Reads these variables with `variable`, which returns the value for a name.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let names = CREDENTIALS.into_iter().chain(REGIONS);
        let set = names.filter_map(|name| Some((name, variable(name)?)));
        Self(set.filter(|(_, value)| !value.is_empty()).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(one, _)| *one == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for S3Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// The bucket and the prefix of all keys, either empty or with a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketAddress {
    pub bucket: String,
    pub prefix: String,
}

impl BucketAddress {
    /// Parses the part of a store's URL after `s3:`: `//BUCKET/PREFIX`.
    pub(crate) fn parse(rest: &str) -> Result<Self, BlobError> {
        const WRONG: BlobError = BlobError::Misconfigured(
            "the URL of results in S3 must be s3://BUCKET or s3://BUCKET/PREFIX, without credentials",
        );
        let rest = rest.strip_prefix("//").ok_or(WRONG)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        let is_right = (3..=63).contains(&bucket.len())
            && is_segment(bucket)
            && (prefix.is_empty() || prefix.split('/').all(is_segment));
        if !is_right {
            return Err(WRONG);
        }
        let end = if prefix.is_empty() { "" } else { "/" };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: format!("{prefix}{end}"),
        })
    }
}

fn is_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
}

/// The client, and one that signs URLs for other machines if these reach the server by another
/// name.
pub(super) fn open(
    address: &BucketAddress,
    options: &S3Options,
) -> Result<(AmazonS3, Option<AmazonS3>), BlobError> {
    let http = Http::new(options.patience, options.ca_file.as_deref())?;
    let inner = client(address, options, &options.endpoint, &http, None)?;
    if options.public_endpoint.is_empty() {
        return Ok((inner, None));
    }
    // One provider for both, so temporary credentials are fetched and refreshed once.
    let credentials = Some(inner.credentials().clone());
    let outer = client(
        address,
        options,
        &options.public_endpoint,
        &http,
        credentials,
    )?;
    Ok((inner, Some(outer)))
}

fn client(
    address: &BucketAddress,
    options: &S3Options,
    endpoint: &str,
    http: &Http,
    credentials: Option<AwsCredentialProvider>,
) -> Result<AmazonS3, BlobError> {
    let bucket = &address.bucket;
    let region = REGIONS
        .into_iter()
        .find_map(|name| options.variables.get(name));
    let region = match &*options.region {
        "" => region.unwrap_or(REGION),
        region => region,
    };
    let mut builder = AmazonS3Builder::new()
        .with_http_connector(http.clone())
        .with_bucket_name(bucket)
        .with_region(region)
        // `If-None-Match: *` for creates. Servers that do not know it answer `NotImplemented`,
        // or replace the object; see `put`.
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // The server verifies what arrives, which TLS does not do for a proxy in between.
        .with_checksum_algorithm(Checksum::SHA256)
        // Single deletes: several S3-compatible servers lack the bulk call or require MD5 for
        // it.
        .with_disable_bulk_delete(true)
        .with_retry(retries());
    if endpoint.is_empty() {
        // A wildcard certificate covers no name with another dot.
        builder = builder.with_virtual_hosted_style_request(!bucket.contains('.'));
    } else {
        builder = builder
            .with_endpoint(host(endpoint, bucket, options)?)
            .with_virtual_hosted_style_request(!options.path_style)
            .with_allow_http(options.allow_http);
    }
    match credentials {
        Some(credentials) => builder = builder.with_credentials(credentials),
        None => {
            for name in CREDENTIALS {
                let key: Result<AmazonS3ConfigKey, _> = name.to_ascii_lowercase().parse();
                if let (Some(value), Ok(key)) = (options.variables.get(name), key) {
                    builder = builder.with_config(key, value);
                }
            }
        }
    }
    builder.build().map_err(|_| {
        // Its text may quote the invalid value.
        BlobError::Misconfigured(
            "the credentials for S3 are incomplete: set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    })
}

/// The URL of the bucket's host, without a trailing slash.
fn host(endpoint: &str, bucket: &str, options: &S3Options) -> Result<String, BlobError> {
    let wrong = BlobError::Misconfigured(
        "an endpoint of S3 must be https://HOST or http://HOST, with or without a port",
    );
    let url = Url::parse(endpoint).ok();
    let url = url.filter(|url| {
        let bare = url.query().is_none() && url.fragment().is_none() && url.path() == "/";
        url.has_host() && bare && url.username().is_empty() && url.password().is_none()
    });
    let Some(url) = url else {
        return Err(wrong);
    };
    match url.scheme() {
        "https" => {}
        "http" if options.allow_http => {}
        "http" => {
            return Err(BlobError::Misconfigured(
                "an http: endpoint of S3 requires results.s3.allow_http = true: anyone on the network path can read the results",
            ));
        }
        _ => return Err(wrong),
    }
    let authority = url.authority();
    let bucket = if options.path_style {
        String::new()
    } else {
        format!("{bucket}.")
    };
    Ok(format!("{}://{bucket}{authority}", url.scheme()))
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: PAUSE_MIN,
            max_backoff: PAUSE_MAX,
            base: 3.0,
        },
        max_retries: RETRIES,
        retry_timeout: RETRY_TIME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misconfigured<T>(result: Result<T, BlobError>) -> bool {
        matches!(result, Err(BlobError::Misconfigured(_)))
    }

    #[test]
    fn addresses_are_a_bucket_and_a_plain_prefix() {
        for (rest, bucket, prefix) in [
            ("//films", "films", ""),
            ("//films/", "films", ""),
            ("//films/kinora/results/", "films", "kinora/results/"),
        ] {
            let found = BucketAddress::parse(rest).unwrap();
            assert_eq!((&*found.bucket, &*found.prefix), (bucket, prefix));
        }
        for wrong in [
            "films",
            "//",
            "//a",
            "///a",
            "//id:secret@host/films",
            "//films//a",
            "//films/../a",
            "//films/a?b",
            "//films/a#b",
            "//films/ä",
        ] {
            assert!(misconfigured(BucketAddress::parse(wrong)), "{wrong}");
        }
    }

    #[test]
    fn endpoints_are_plain_and_secret_unless_allowed() {
        let mut options = S3Options {
            path_style: true,
            ..S3Options::default()
        };
        for wrong in [
            "",
            "s3.example.com",
            "https://id:secret@host",
            "https://host/a",
            "https://host/?a",
            "ftp://host",
        ] {
            assert!(misconfigured(host(wrong, "films", &options)), "{wrong}");
        }
        assert!(misconfigured(host(
            "http://localhost:9000",
            "films",
            &options
        )));
        options.allow_http = true;
        for (path_style, expected) in [
            (true, "http://localhost:9000"),
            (false, "http://films.localhost:9000"),
        ] {
            options.path_style = path_style;
            let found = host("http://localhost:9000/", "films", &options).unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn every_variable_is_known_to_the_library_and_none_is_shown() {
        for name in CREDENTIALS {
            let key: Result<AmazonS3ConfigKey, _> = name.to_ascii_lowercase().parse();
            assert!(key.is_ok(), "{name}");
        }
        let variables = S3Variables::read(|_| Some("hush".to_owned()));
        let options = S3Options {
            variables,
            ..S3Options::default()
        };
        assert!(!format!("{options:?}").contains("hush"));
        let half = S3Variables::read(|name| (name == CREDENTIALS[0]).then(|| "id".to_owned()));
        let options = S3Options {
            variables: half,
            ..S3Options::default()
        };
        assert!(misconfigured(open(
            &BucketAddress::parse("//films").unwrap(),
            &options
        )));
    }
}
