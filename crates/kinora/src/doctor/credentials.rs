//! Checks the certificate with which videos are signed.

use kinora_contract::iso_date;

use super::report::Finding;
use super::secrets;
use crate::config::Config;
use crate::credentials::{self, Credentials, RENEWAL_MS};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Whether it can sign, and for how long, if one is configured.
pub(super) fn signature(config: &Config, now_ms: u64) -> Option<Finding> {
    match credentials::open(config) {
        Ok(None) => None,
        Ok(Some(opened)) => {
            let exposed = secrets::exposed(&config.provenance.key_file);
            Some(exposed.unwrap_or_else(|| validity(&opened, now_ms)))
        }
        Err(failure) => Some(Finding::Bad(failure.to_string())),
    }
}

fn validity(opened: &Credentials, now_ms: u64) -> Finding {
    let (name, until) = (&opened.name, iso_date(opened.not_after_ms));
    let left_ms = opened.not_after_ms.saturating_sub(now_ms);
    if left_ms < RENEWAL_MS {
        let days = left_ms / DAY_MS;
        return Finding::Note(format!(
            "by \"{name}\" until {until}, in {days} days: get a new certificate, or videos are unsigned from then on, \
             and the signatures of earlier ones are no longer valid"
        ));
    }
    Finding::Good(format!("by \"{name}\" until {until}"))
}
