//! The settings of an S3 result store, and how clients get its results.

use std::path::PathBuf;

use kinora_blobs::{S3Options, S3Variables};
use serde::Deserialize;

use super::Config;
use crate::failure::Failure;

/// How clients get results in S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    /// By a redirect if clients can be expected to reach S3, otherwise through the service.
    Auto,
    /// By a redirect to a signed S3 URL.
    Redirect,
    /// Through the service.
    Stream,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct S3 {
    pub(crate) endpoint: String,
    pub(crate) public_endpoint: String,
    pub(crate) region: String,
    pub(crate) path_style: bool,
    pub(crate) allow_http: bool,
    pub(crate) ca_file: PathBuf,
}

impl Config {
    /// The options for results in S3. Reads the credentials from the process's variables.
    pub(crate) fn s3(&self) -> S3Options {
        let s3 = &self.results.s3;
        S3Options {
            endpoint: s3.endpoint.clone(),
            public_endpoint: s3.public_endpoint.clone(),
            region: s3.region.clone(),
            path_style: s3.path_style,
            allow_http: s3.allow_http,
            ca_file: (!s3.ca_file.as_os_str().is_empty()).then(|| s3.ca_file.clone()),
            variables: S3Variables::read(|name| std::env::var(name).ok()),
            ..S3Options::default()
        }
    }

    /// Whether to redirect clients to S3 for results.
    pub(crate) fn redirects(&self) -> bool {
        let s3 = &self.results.s3;
        match self.results.delivery {
            Delivery::Auto => {
                self.is_in_s3() && (s3.endpoint.is_empty() || !s3.public_endpoint.is_empty())
            }
            Delivery::Redirect => true,
            Delivery::Stream => false,
        }
    }

    fn is_in_s3(&self) -> bool {
        matches!(kinora_blobs::root(&self.results_url()), Ok(None))
    }

    pub(super) fn check_results(&self) -> Result<(), Failure> {
        kinora_blobs::root(&self.results_url())
            .map_err(|error| Failure::because("The setting results.url is invalid", error))?;
        if self.results.delivery == Delivery::Redirect && !self.is_in_s3() {
            return Err(Failure::new(
                "The setting results.delivery cannot be 'redirect' when results are in a folder.",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_reach_into_sections_of_sections() {
        let read = |told: &[(&str, &str)]| {
            let told: Vec<_> = told
                .iter()
                .map(|(name, text)| (name.to_string(), text.to_string()))
                .collect();
            Config::read(None, &told).map_err(|failure| failure.to_string())
        };
        let results = read(&[
            ("KINORA_RESULTS_URL", "s3://films/kinora"),
            ("KINORA_RESULTS_S3_ENDPOINT", "http://127.0.0.1:3900"),
            ("KINORA_RESULTS_S3_REGION", "garage"),
            ("KINORA_RESULTS_S3_PATH_STYLE", "false"),
            ("KINORA_RESULTS_S3_ALLOW_HTTP", "true"),
            ("KINORA_RESULTS_DELIVERY", "redirect"),
        ]);
        let results = results.unwrap().results;
        assert_eq!(results.s3.endpoint, "http://127.0.0.1:3900");
        assert_eq!(results.s3.region, "garage");
        assert!(!results.s3.path_style && results.s3.allow_http);
        assert_eq!(results.delivery, Delivery::Redirect);
        for unknown in ["KINORA_RESULTS_S3_SECRET", "KINORA_RESULTS_S3"] {
            let error = read(&[(unknown, "x")]).unwrap_err();
            assert!(error.contains("names no setting"), "{error}");
        }
    }

    #[test]
    fn clients_are_sent_to_s3_where_they_can_be_expected_to_reach_it() {
        let mut config = Config::defaults();
        assert!(!config.redirects());
        config.results.url = "s3://films".to_owned();
        assert!(config.redirects(), "AWS");
        config.results.s3.endpoint = "https://garage.internal".to_owned();
        assert!(!config.redirects());
        config.results.s3.public_endpoint = "https://s3.example.com".to_owned();
        assert!(config.redirects());
        config.results.delivery = Delivery::Stream;
        assert!(!config.redirects());
    }
}
