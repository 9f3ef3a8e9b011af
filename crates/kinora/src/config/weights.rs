//! The settings of downloads by `kinora models add` and `pull`: where to ask, a mirror, a token, and
//! limits. A token without the origin that it is for is refused.

use std::path::PathBuf;
use std::time::Duration;

use kinora_http_download::{DownloadOptions, OriginToken};
use serde::Deserialize;
use url::Url;

use super::Config;
use super::secret::{check_token, token};
use crate::failure::Failure;

/// Wait before the first retry.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Time without a byte after which a transfer is retried: far longer than a busy server takes for
/// the next piece, and short beside the hours of a large download.
const STALL_LIMIT: Duration = Duration::from_mins(1);
/// Maximum number of consecutive retries without progress. With doubling waits they bridge half a
/// minute, such as a server's restart. After that an operator should look; the same command resumes
/// the download.
const RETRIES_MAX: u32 = 5;

/// `[weights]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightSettings {
    hub_url: String,
    releases_url: String,
    mirror: String,
    token_file: PathBuf,
    token_variable: String,
    pub(crate) token_origin: String,
    pub(crate) downloads_max: u32,
}

impl Config {
    pub(super) fn check_weights(&self) -> Result<(), Failure> {
        let weights = &self.weights;
        if weights.downloads_max == 0 {
            return Err(Failure::new(
                "The setting weights.downloads_max must be at least 1.",
            ));
        }
        check_token("weights", &weights.token_file, &weights.token_variable)?;
        // A token without an origin would be sent to every host that a file's URL names.
        if weights.has_token() && weights.token_origin.is_empty() {
            return Err(Failure::new(
                "A token is set, but not its publisher: set weights.token_origin to the scheme and host of the \
                 publisher, such as https://hub.example.com.",
            ));
        }
        if !weights.mirror.is_empty() {
            weights.mirror_url()?;
        }
        weights.hub()?;
        weights.releases()?;
        self.check_sources()
    }

    /// Several engines may use one file, but it comes from one place.
    fn check_sources(&self) -> Result<(), Failure> {
        let all = self
            .engines
            .iter()
            .flat_map(|engine| engine.files.iter().map(move |file| (engine, file)));
        let all: Vec<_> = all.collect();
        for (number, (engine, file)) in all.iter().enumerate() {
            // Two models may share a text encoder. With two different sources, the order of
            // downloads would decide which of them both engines read.
            let mut earlier = all[..number].iter();
            if let Some((other, _)) = earlier.find(|(_, one)| one.path == file.path && one != file)
            {
                return Err(Failure::new(format!(
                    "The engines '{}' and '{}' have different sources of {}.",
                    other.name,
                    engine.name,
                    file.path.display()
                )));
            }
        }
        Ok(())
    }
}

impl WeightSettings {
    /// Whether a token is configured.
    pub(crate) fn has_token(&self) -> bool {
        !self.token_file.as_os_str().is_empty() || !self.token_variable.is_empty()
    }

    /// The address from which to get the file that its publisher has at `url`.
    pub(crate) fn address(&self, url: &Url) -> Result<Url, Failure> {
        if self.mirror.is_empty() {
            return Ok(url.clone());
        }
        let mut address = self.mirror_url()?;
        // A mirror keeps the publishers' paths: http://10.0.0.7/hub serves
        // https://hub.example.com/a/b.gguf as http://10.0.0.7/hub/a/b.gguf.
        let below = address.path().trim_end_matches('/').to_owned();
        address.set_path(&format!("{below}{}", url.path()));
        address.set_query(url.query());
        Ok(address)
    }

    /// The model hub that `kinora models add` asks.
    pub(crate) fn hub(&self) -> Result<Url, Failure> {
        base_url("hub_url", &self.hub_url)
    }

    /// The API that lists the releases of programs.
    pub(crate) fn releases(&self) -> Result<Url, Failure> {
        base_url("releases_url", &self.releases_url)
    }

    fn mirror_url(&self) -> Result<Url, Failure> {
        base_url("mirror", &self.mirror)
    }

    /// How to download. Reads the token. `roots_pem` are trusted certificates besides the public
    /// ones.
    pub(crate) fn options(&self, roots_pem: Vec<u8>) -> Result<DownloadOptions, Failure> {
        self.options_with(roots_pem, |name| std::env::var(name).ok())
    }

    fn options_with(
        &self,
        roots_pem: Vec<u8>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<DownloadOptions, Failure> {
        let secret = token("weights", &self.token_file, &self.token_variable, variable)?;
        let token = secret.map(|secret| OriginToken::new(&self.token_origin, &secret));
        let token = token
            .transpose()
            .map_err(|error| Failure::because("The section [weights] is invalid", error))?;
        Ok(DownloadOptions {
            stall_limit: STALL_LIMIT,
            retries_max: RETRIES_MAX,
            first_wait: FIRST_WAIT,
            token,
            roots_pem,
        })
    }
}

/// The URL in the setting `key`.
fn base_url(key: &str, text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    url.ok_or_else(|| {
        Failure::new(format!(
            "The setting weights.{key} must be an http or https URL, without query, fragment or password."
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(change: impl FnOnce(&mut WeightSettings)) -> WeightSettings {
        let mut weights = Config::defaults().weights;
        change(&mut weights);
        weights
    }

    #[test]
    fn a_mirror_has_the_publishers_paths() {
        let url = Url::parse("https://hub.example.com/a/resolve/b.gguf?download=true").unwrap();
        let at = |mirror: &str| {
            let weights = weights(|weights| weights.mirror = mirror.to_owned());
            weights.address(&url).unwrap().to_string()
        };
        assert_eq!(at(""), url.as_str());
        for mirror in ["http://10.0.0.7:8000/hub", "http://10.0.0.7:8000/hub/"] {
            let expected = "http://10.0.0.7:8000/hub/a/resolve/b.gguf?download=true";
            assert_eq!(at(mirror), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let judged = |change: fn(&mut WeightSettings)| {
            let mut config = Config::defaults();
            change(&mut config.weights);
            config.check_weights().unwrap_err().to_string()
        };
        for (error, named) in [
            (judged(|it| it.downloads_max = 0), "weights.downloads_max"),
            (judged(|it| it.mirror = "mirror".into()), "weights.mirror"),
            (judged(|it| it.hub_url = "hub".into()), "weights.hub_url"),
            (judged(|it| it.releases_url.clear()), "weights.releases_url"),
            (
                judged(|it| it.mirror = "https://u:p@a".into()),
                "weights.mirror",
            ),
            (
                judged(|it| it.token_file = "t".into()),
                "weights.token_origin",
            ),
            (
                judged(|it| {
                    it.token_file = "t".into();
                    it.token_variable = "T".into();
                }),
                "not both",
            ),
        ] {
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_token_comes_from_a_file_or_a_variable() {
        let none = |_: &str| None;
        let of = |weights: WeightSettings, variable: fn(&str) -> Option<String>| {
            let options = weights.options_with(Vec::new(), variable);
            options.map(|options| options.token.is_some())
        };
        assert!(!of(weights(|_| {}), none).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "secret\n").unwrap();
        let by_file = weights(|it| {
            it.token_file = path;
            it.token_origin = "https://hub.example.com".into();
        });
        assert!(of(by_file.clone(), none).unwrap());
        let mut plain = by_file;
        plain.token_origin = "http://hub.example.com".into();
        assert!(of(plain, none).is_err());
        let by_variable = weights(|it| {
            it.token_variable = "TOKEN".into();
            it.token_origin = "https://hub.example.com".into();
        });
        assert!(of(by_variable.clone(), none).is_err());
        assert!(of(by_variable, |name| Some(format!("{name}-value"))).unwrap());
    }
}
