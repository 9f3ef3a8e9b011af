//! The link that signs a browser in to Studio: `kinora serve` prints it to a terminal, and `--open` opens it. Nothing else gets its
//! code: a journal or a container's log would keep it, and other users of the machine see the arguments of programs.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use kinora_api::{BrowserKey, SignInLink};
use kinora_contract::{Clock, hex};
use url::{Host, Url};

use crate::config::Config;
use crate::failure::Failure;
use crate::folder;
use crate::keys::NewKeyParts;
use crate::output::print;
use crate::system::{self, SystemClock, current_actor};

/// Random bytes of a code: 128 bits, which nobody guesses.
const CODE_BYTES: usize = 16;
/// The program that opens an address in the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};
/// The file in the data folder that leads the browser to the link.
const REDIRECT_FILE: &str = "open-studio.html";

/// The link of this start, with its code.
pub(crate) struct StudioLink {
    /// Its address. The code is in the fragment, which browsers do not send.
    url: String,
    /// What the API knows of it.
    pub(crate) link: Arc<SignInLink>,
}

impl StudioLink {
    /// A new link; `None` if nobody would see it, or if somebody on the network could read its code.
    pub(crate) fn new(config: &Config, base_url: &str) -> Result<Option<Self>, Failure> {
        let is_seen = io::stdout().is_terminal() || config.opens_browser;
        if !is_seen || !config.studio.enabled || !is_private(config, base_url) {
            return Ok(None);
        }
        let now_ms = SystemClock.now_ms();
        let code = hex::text(&system::random::<CODE_BYTES>()?);
        let (text, record) = NewKeyParts::for_browser(now_ms).generate(now_ms)?;
        let key = BrowserKey {
            text,
            record,
            creator: current_actor(),
        };
        let link = SignInLink::new(&code, base_url, key, Arc::new(SystemClock));
        Ok(link.map(|link| Self {
            url: format!("{base_url}/#sign-in={code}"),
            link: Arc::new(link),
        }))
    }

    /// Prints the link if the output is a terminal, and returns whether it is.
    pub(crate) fn print(&self) -> bool {
        let is_terminal = io::stdout().is_terminal();
        if is_terminal {
            print(&format!(
                "\nOpen Studio in a browser. This link signs you in; it works once, for ten minutes:\n\n  {}\n\n",
                self.url
            ));
        }
        is_terminal
    }
}

/// Whether a code under this URL stays on the machine, or the operator has named the URL.
fn is_private(config: &Config, base_url: &str) -> bool {
    if !config.base_url.is_empty() {
        return true;
    }
    let url = Url::parse(base_url).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// A file that leads a browser to the link; removed when dropped.
pub(crate) struct RedirectFile(PathBuf);

impl RedirectFile {
    /// Writes the file, which only this user may read.
    fn write(data: &Path, url: &str) -> io::Result<Self> {
        let path = std::path::absolute(data.join(REDIRECT_FILE))?;
        folder::replace_private(&path, redirect_page(url).as_bytes())?;
        Ok(Self(path))
    }
}

impl Drop for RedirectFile {
    fn drop(&mut self) {
        // Useless by now: its code is known to this process alone.
        let _ = fs::remove_file(&self.0);
    }
}

fn redirect_page(url: &str) -> String {
    let url = url
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>Kinora \
         Studio</title>\n<meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<p><a href=\"{url}\">Open Studio</a></p>\n"
    )
}

/// Opens Studio in the user's browser, by the link if there is one. The log says why it cannot. The browser may read the
/// returned file until it is dropped.
pub(crate) fn open_browser(
    config: &Config,
    base_url: &str,
    link: Option<&StudioLink>,
) -> Option<RedirectFile> {
    if !config.studio.enabled {
        tracing::warn!("no browser opened: Studio is off (studio.enabled = false)");
        return None;
    }
    let Some(link) = link else {
        open(&format!("{base_url}/"), base_url);
        return None;
    };
    // Other users see the arguments of every program, so the browser gets the path of a private file instead of the link.
    let file = RedirectFile::write(&config.data, &link.url);
    let file = file.map_err(|error| {
        tracing::warn!(%error, url = base_url, "no browser opened: {REDIRECT_FILE} cannot be written; open the address yourself");
    });
    let file = file.ok()?;
    let address = Url::from_file_path(&file.0).ok()?;
    open(address.as_str(), base_url);
    Some(file)
}

/// Has the opener show `address`; `shown` is the address to open by hand if that fails.
fn open(address: &str, shown: &str) {
    let mut command = Command::new(OPENER);
    // A browser that starts inherits the environment, where the service's secrets may be.
    let names = std::env::vars_os().map(|(name, _)| name);
    let is_secret = |name: &str| name.starts_with("KINORA_") || name.starts_with("AWS_");
    for name in names.filter(|name| is_secret(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    let started = command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the service, and not the browser.
        .process_group(0)
        .spawn();
    let shown = shown.to_owned();
    let fail = move |reason: String| {
        tracing::warn!(
            reason,
            url = shown,
            "no browser opened; open the address yourself"
        );
    };
    match started {
        Ok(mut child) => {
            // Some openers stay as long as their browser.
            thread::spawn(move || match child.wait() {
                Ok(status) if status.success() => {}
                Ok(status) => fail(format!("{OPENER} failed: {status}")),
                Err(error) => fail(format!("{OPENER} failed: {error}")),
            });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fail(format!("this machine has no {OPENER}"));
        }
        Err(error) => fail(format!("{OPENER} did not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_code_travels_only_on_this_machine_or_to_the_configured_address() {
        let mut config = Config::defaults();
        for (base_url, is_safe) in [
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://localhost:8080", true),
            ("http://192.0.2.1:8080", false),
            ("http://kinora.example.com:8080", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_private(&config, base_url), is_safe, "{base_url}");
        }
        config.base_url = "https://video.example.com".to_owned();
        assert!(is_private(&config, &config.base_url));
    }

    #[test]
    fn p14_a_link_is_made_only_if_it_is_opened_or_seen() {
        let mut config = Config::defaults();
        let link = |config: &Config| StudioLink::new(config, "http://127.0.0.1:1").unwrap();
        // A test may run in a terminal.
        assert_eq!(link(&config).is_some(), io::stdout().is_terminal());
        config.opens_browser = true;
        let [one, other] = [(); 2].map(|()| link(&config).unwrap().url);
        let (page, code) = one.split_once("#sign-in=").unwrap();
        assert_eq!((page, code.len()), ("http://127.0.0.1:1/", 2 * CODE_BYTES));
        assert_ne!(one, other);
        config.studio.enabled = false;
        assert!(link(&config).is_none());
    }

    #[test]
    fn p14_the_file_that_leads_to_the_link_is_its_owner_s_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(REDIRECT_FILE);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let file = RedirectFile::write(folder.path(), "http://a/?\"<&#sign-in=0").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let page = fs::read_to_string(&path).unwrap();
        assert!(
            page.contains("0; url=http://a/?&quot;&lt;&amp;#sign-in=0\""),
            "{page}"
        );
        drop(file);
        assert!(!path.exists());
    }
}
