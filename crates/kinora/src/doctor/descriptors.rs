//! The number of files and connections that the service may have open.

use super::finding::Finding;
use crate::config::Config;
use crate::descriptors;

/// The limit as the service would have it, raised as far as the system allows.
pub(super) fn limit(config: &Config) -> Finding {
    let found = descriptors::raise(config.slots());
    let configured = config.http.connections_max;
    match found.connections_max(configured) {
        Err(failure) => Finding::Bad(failure.to_string()),
        Ok(possible) if possible < configured => Finding::Note(format!(
            "{} may be open: {possible} connections instead of http.connections_max = {configured}; \
             raise the limit ('LimitNOFILE=' in a systemd unit, 'ulimit -n') or lower the setting",
            found.limit
        )),
        Ok(possible) => Finding::Good(format!(
            "{} allowed, enough for {possible} connections",
            found.limit
        )),
    }
}
