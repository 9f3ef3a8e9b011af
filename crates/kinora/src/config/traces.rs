//! The settings of traces, with OpenTelemetry's standard variables as fallbacks. Nothing is
//! exported unless an endpoint is set.

use std::path::PathBuf;

use kinora_traces::TraceOptions;
use serde::Deserialize;

use super::Config;
use super::secret::secret_file;
use crate::failure::Failure;
use crate::system;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const DEFAULT_SERVICE: &str = "kinora";

/// `[traces]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TraceSettings {
    endpoint: String,
    headers_file: PathBuf,
    sampling_ratio: f64,
    service_name: String,
}

impl Config {
    /// The collector of traces, if one is configured. Reads its headers.
    pub(crate) fn traces(&self) -> Result<Option<TraceOptions>, Failure> {
        self.traces_with(|name| std::env::var(name).ok())
    }

    fn traces_with(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TraceOptions>, Failure> {
        let traces = &self.traces;
        // A setting of ours wins; OpenTelemetry's variables are for machines where all services get
        // the same ones.
        let or_variable = |setting: &str, name: &str| match setting {
            "" => variable(name).unwrap_or_default(),
            setting => setting.to_owned(),
        };
        let endpoint = or_variable(&traces.endpoint, ENDPOINT);
        if endpoint.is_empty() {
            return Ok(None);
        }
        let headers = if traces.headers_file.as_os_str().is_empty() {
            variable(HEADERS).unwrap_or_default()
        } else {
            secret_file("traces.headers_file", &traces.headers_file)?
        };
        let service = match or_variable(&traces.service_name, SERVICE_NAME) {
            name if name.is_empty() => DEFAULT_SERVICE.to_owned(),
            name => name,
        };
        Ok(Some(TraceOptions {
            endpoint,
            headers,
            ratio: traces.sampling_ratio,
            service,
            instance: format!("{}-{}", system::host_name(), std::process::id()),
            version: env!("CARGO_PKG_VERSION"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn nothing_is_exported_unless_an_operator_wants_it() {
        assert!(Config::defaults().traces_with(none).unwrap().is_none());
    }

    #[test]
    fn the_standard_variables_stand_in_for_settings_that_are_empty() {
        let variable = |name: &str| {
            let text = match name {
                ENDPOINT => "http://standard:4318",
                HEADERS => "a=b",
                SERVICE_NAME => "videos",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let mut config = Config::defaults();
        let options = config.traces_with(variable).unwrap().unwrap();
        assert_eq!(options.endpoint, "http://standard:4318");
        assert_eq!((&*options.headers, &*options.service), ("a=b", "videos"));
        let folder = tempfile::tempdir().unwrap();
        config.traces.headers_file = folder.path().join("headers");
        std::fs::write(&config.traces.headers_file, "c=d\n").unwrap();
        config.traces.endpoint = "http://own:4318".to_owned();
        let options = config.traces_with(variable).unwrap().unwrap();
        assert_eq!(
            (&*options.endpoint, &*options.headers),
            ("http://own:4318", "c=d\n")
        );
        let options = config.traces_with(none).unwrap().unwrap();
        assert_eq!((&*options.service, options.ratio), (DEFAULT_SERVICE, 1.0));
        config.traces.headers_file = "/no/such".into();
        let error = config.traces_with(none).err().unwrap().to_string();
        assert!(error.contains("traces.headers_file /no/such"), "{error}");
    }
}
