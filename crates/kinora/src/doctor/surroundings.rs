//! Checks everything around the data: the clock, the listen address and base URL, the limit of open
//! files, networks of references, and the policy service.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::time::UNIX_EPOCH;

use kinora_contract::Clock;
use kinora_policy::PolicyService;

use super::report::Finding;
use crate::address::{ListenAddress, check_base_url};
use crate::config::Config;
use crate::system::{self, SystemClock};
use crate::{compose, film_signer, resources, serve, store_access};

/// Files further ahead than this were written with another clock.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1000;

pub(super) fn clock(data: &Path) -> Finding {
    let now_ms = SystemClock.now_ms();
    if let Some(warning) = system::clock_warning() {
        return Finding::Bad(warning.to_owned());
    }
    // SQLite writes the log at each commit and the database itself only at a checkpoint, so the log
    // has the newer time.
    let written = std::fs::metadata(data.join("kinora.db-wal"))
        .or_else(|_| std::fs::metadata(data.join("kinora.db")))
        .and_then(|found| found.modified());
    let written_ms = written
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
    if written_ms > now_ms + AHEAD_MS_MAX {
        let minutes = (written_ms - now_ms) / 60_000;
        return Finding::Note(format!(
            "{minutes} min behind the last change of the data: expiry is delayed by that much"
        ));
    }
    Finding::Good("plausible".to_owned())
}

/// Whether the operator's command for signatures is there, if there is one. It needs a video to sign anything.
pub(super) fn film_signer(config: &Config) -> Option<Finding> {
    match film_signer::program(config) {
        Ok(None) => None,
        Ok(Some(program)) => Some(Finding::Good(format!("by {program}, which is found"))),
        Err(failure) => Some(failure.into()),
    }
}

pub(super) fn listen(wanted: &ListenAddress) -> Finding {
    let address = match wanted.resolve() {
        Ok(address) => address,
        Err(failure) => return failure.into(),
    };
    // Bound and released at once. A service that is running already is no fault, so an address in
    // use is a note.
    match TcpListener::bind(address) {
        Ok(_) => Finding::Good(format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Finding::Note(format!(
            "{address} is in use: the service is already running, or another program listens there"
        )),
        Err(error) => Finding::Bad(format!(
            "cannot listen on {address}: {error}; name another address with --listen"
        )),
    }
}

pub(super) fn base_url(config: &Config) -> Finding {
    if let Err(failure) = check_base_url(&config.base_url) {
        return failure.into();
    }
    let Ok(address) = config.listen.resolve() else {
        return Finding::Note("unknown, like the listen address".to_owned());
    };
    let base_url = serve::base_url(config, address);
    if !config.base_url.is_empty() {
        return Finding::Good(format!("begin with {base_url}"));
    }
    let reach = if config.listen.is_unspecified() {
        "which other machines cannot reach"
    } else {
        "which only this machine may reach"
    };
    Finding::Note(format!(
        "begin with {base_url}, {reach}; set --base-url or base_url to the URL that clients use"
    ))
}

/// Problems with the networks that references may come from.
pub(super) fn references(config: &Config) -> Option<Finding> {
    let allowed = compose::allow_networks(config).err();
    let failure = allowed.or_else(|| compose::deny_networks(config).err())?;
    Some(failure.into())
}

/// The limit as the service would have it, raised as far as the system allows.
pub(super) fn open_files(config: &Config) -> Finding {
    let found = resources::raise_descriptors(config.slots());
    let configured = config.http.connections_max;
    match found.connections_max(configured) {
        Err(failure) => failure.into(),
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

/// Sends a test request to the policy service, if one is configured.
pub(super) fn policy(config: &Config) -> Option<Finding> {
    match config.policy() {
        Ok(None) => None,
        Ok(Some(policy)) => Some(ask_policy(&policy)),
        Err(failure) => Some(failure.into()),
    }
}

fn ask_policy(policy: &PolicyService) -> Finding {
    let asked = match store_access::runtime() {
        Ok(runtime) => runtime.block_on(policy.check()),
        Err(failure) => return failure.into(),
    };
    match asked {
        Ok(_) => Finding::Good("the service answers".to_owned()),
        Err(error) => Finding::Bad(format!(
            "the service does not answer a question with the stage \"check\": {error}; see docs/policy.md"
        )),
    }
}
