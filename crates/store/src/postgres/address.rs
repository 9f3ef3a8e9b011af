//! The address of a store: the syntax of `libpq`, most of which the driver parses, and our own
//! parameters.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::{OpenError, PostgresOptions};

/// A parsed address. It may hold a password, which never appears in any output.
#[derive(Clone)]
pub(super) struct ServerAddress {
    /// One configuration for each host, in the order of the attempts.
    pub(super) hosts: Vec<Config>,
    /// Trusted certificates that replace those of the public authorities.
    pub(super) roots: Option<PathBuf>,
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address")
    }
}

/// Whether `url` is the address of such a store.
pub(crate) fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

impl ServerAddress {
    /// Parses `url`: `postgres://user:password@host:port,host:port/database?name=value&...` with
    /// the parameters of the driver
    /// (<https://docs.rs/tokio-postgres/latest/tokio_postgres/config/struct.Config.html>), and
    /// `sslmode` (`disable`, `prefer`: no encryption; `require`, `verify-ca`, `verify-full`:
    /// encrypted, certificate and name checked), `sslrootcert` (a file), `schema` or `search_path`.
    pub(super) fn parse(url: &str, options: &PostgresOptions) -> Result<Self, OpenError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut encrypts, mut roots, mut schema) = (false, None, None);
        let mut others = Vec::new();
        for one in query.split('&').filter(|one| !one.is_empty()) {
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            match name {
                "sslmode" => match value {
                    "disable" | "allow" | "prefer" => encrypts = false,
                    "require" | "verify-ca" | "verify-full" => encrypts = true,
                    _ => return Err(invalid_address("sslmode is unknown")),
                },
                "sslrootcert" => roots = Some(PathBuf::from(percent_decode(value)?)),
                "schema" | "search_path" => schema = Some(percent_decode(value)?),
                _ => others.push(one),
            }
        }
        let mut hosts = Vec::new();
        for base in split_hosts(base) {
            let address = format!("{base}?{}", others.join("&"));
            // The parser's own message is dropped: it may repeat parts of the address, and with them
            // the password.
            let parsed = address.parse::<Config>();
            let mut config = parsed.map_err(|_| invalid_address("it cannot be understood"))?;
            if let Some(schema) = &schema {
                // Spaces separate options of a connection; a backslash keeps one (libpq, `options`).
                let schema = schema.replace('\\', "\\\\").replace(' ', "\\ ");
                let given = config.get_options().unwrap_or_default();
                let both = format!("{given} -c search_path={schema}");
                config.options(both.trim());
            }
            // Never the driver's `Prefer`, which would go on unencrypted if an attacker in between
            // denied that the server knows TLS.
            config.ssl_mode(if encrypts {
                SslMode::Require
            } else {
                SslMode::Disable
            });
            keep_alive(&mut config, options);
            hosts.push(config);
        }
        Ok(Self { hosts, roots })
    }
}

/// Splits an address (without parameters) into one per host, so that each host has its own time to
/// answer.
fn split_hosts(base: &str) -> Vec<String> {
    let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, hosts) = match authority.rfind('@') {
        Some(at) => authority.split_at(at + 1),
        None => ("", authority),
    };
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{user}{host}{path}"))
        .collect()
}

/// Makes a connection notice a server that vanished without closing it. The kernel's own defaults are
/// hours. Parameters in the address win.
fn keep_alive(config: &mut Config, options: &PostgresOptions) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_millis(options.connect_timeout_ms.into()));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_millis(options.statement_timeout_ms.into()));
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_idle(Duration::from_secs(30));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
    }
    if config.get_application_name().is_none() {
        config.application_name("kinora");
    }
}

fn invalid_address(why: &str) -> OpenError {
    OpenError::Unavailable(format!("the address of the PostgreSQL database is wrong: {why}").into())
}

fn percent_decode(value: &str) -> Result<String, OpenError> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next(), rest.next()];
        let [high, low] = digits.map(|digit| char::from(digit?).to_digit(16));
        let code = high
            .zip(low)
            .and_then(|(high, low)| u8::try_from(16 * high + low).ok());
        bytes.push(code.ok_or_else(|| invalid_address("a percent sign begins no code"))?);
    }
    String::from_utf8(bytes).map_err(|_| invalid_address("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::{Host, TargetSessionAttrs};

    use super::*;

    fn parse(url: &str) -> Result<ServerAddress, OpenError> {
        ServerAddress::parse(url, &PostgresOptions::default())
    }

    #[test]
    fn an_address_is_taken_apart() {
        let address = parse(
            "postgres://kinora:s%20t@one:1,two:2/videos?sslmode=verify-full&sslrootcert=/etc/ca%20x.pem\
             &target_session_attrs=read-write&schema=kinora",
        )
        .unwrap();
        assert_eq!(address.roots, Some(PathBuf::from("/etc/ca x.pem")));
        assert_eq!(address.hosts.len(), 2);
        for (config, (host, port)) in address.hosts.iter().zip([("one", 1), ("two", 2)]) {
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
            assert_eq!(config.get_hosts(), [Host::Tcp(host.to_owned())]);
            assert_eq!(config.get_ports(), [port]);
            assert_eq!(config.get_password(), Some(&b"s t"[..]));
            assert_eq!(config.get_options(), Some("-c search_path=kinora"));
            assert_eq!(config.get_dbname(), Some("videos"));
            assert_eq!(
                config.get_target_session_attrs(),
                TargetSessionAttrs::ReadWrite
            );
        }
        let plain = parse("postgres://host/videos").unwrap();
        assert_eq!(plain.hosts[0].get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn a_wrong_address_is_refused_without_repeating_it() {
        for url in [
            "postgres://me:secret@host/db?sslmode=secret",
            "postgres://me:secret@host/db?secret=1",
            "postgres://me:secret@host:secret/db",
            "postgres://me:secret@host/db?sslrootcert=%zzsecret",
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!format!("{:?}", parse("postgres://me:secret@host/db")).contains("secret"));
    }
}
