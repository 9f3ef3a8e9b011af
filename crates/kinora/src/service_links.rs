//! The variables that Kubernetes puts into each container for the Services of its namespace: a
//! Service `kinora` makes `KINORA_SERVICE_HOST` and seven more, which are no settings of ours.

use std::net::IpAddr;

/// Transport protocols of a Service's port.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

/// Whether a variable is a service link, by its name behind `KINORA_` and by its value: a misspelt
/// setting may have such a name, but hardly such a value too.
pub(crate) fn is_service_link(rest: &str, value: &str) -> bool {
    // A Service called `kinora-api` makes KINORA_API_PORT.
    let mut begins = std::iter::once(rest).chain(rest.match_indices('_').filter_map(|(at, _)| {
        let (_, behind) = rest.split_at_checked(at + 1)?;
        Some(behind)
    }));
    begins.any(|name| is_part(name, value))
}

/// Whether Kubernetes gives a Service a variable that ends so, with such a value.
fn is_part(name: &str, value: &str) -> bool {
    let is_address = || value.parse::<IpAddr>().is_ok();
    let is_number = || value.parse::<u16>().is_ok();
    if name == "SERVICE_HOST" {
        return is_address();
    }
    if name == "SERVICE_PORT" || name.starts_with("SERVICE_PORT_") {
        return is_number();
    }
    let Some(port) = name.strip_prefix("PORT") else {
        return false;
    };
    if port.is_empty() {
        return is_url(value);
    }
    // Such as `_8080_TCP_ADDR`.
    let mut words = port.split('_').skip(1);
    let number = words.next().and_then(|word| word.parse::<u16>().ok());
    let protocol = words.next().map(str::to_ascii_lowercase);
    let is_known = protocol.is_some_and(|protocol| PROTOCOLS.contains(&&*protocol));
    let fits = match words.next() {
        None => is_url(value),
        Some("PROTO") => PROTOCOLS.contains(&value),
        Some("PORT") => is_number(),
        Some("ADDR") => is_address(),
        Some(_) => false,
    };
    number.is_some() && is_known && fits && words.next().is_none()
}

fn is_url(value: &str) -> bool {
    let scheme = value.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| PROTOCOLS.contains(&scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_service_are_told_by_name_and_value() {
        for (name, value) in [
            ("SERVICE_HOST", "10.96.0.10"),
            ("SERVICE_HOST", "fd00::10"),
            ("SERVICE_PORT", "8080"),
            ("API_SERVICE_PORT_HTTP", "8080"),
            ("API_SERVICE_HOST", "10.96.0.10"),
            ("PORT", "tcp://10.96.0.10:8080"),
            ("STORE_PRIMARY_PORT", "tcp://10.96.0.10:5432"),
            ("PORT_8080_TCP", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_PROTO", "tcp"),
            ("PORT_8080_TCP_PORT", "8080"),
            ("PORT_8080_TCP_ADDR", "10.96.0.10"),
            ("METRICS_PORT_53_UDP_ADDR", "fd00::10"),
        ] {
            assert!(is_service_link(name, value), "{name}={value}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_none() {
        for (name, value) in [
            ("PORT", "8080"),
            ("LISTEN_PORT", "8080"),
            ("SERVICE_HOST", "video.example.com"),
            ("SERVICE_PORT", "http"),
            ("WORKER_SLOT", "4"),
            ("PORTS", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_ADDR", "here"),
            ("PORT_8080_ICMP", "tcp://10.96.0.10:8080"),
            ("PORT_X_TCP", "tcp://10.96.0.10:8080"),
            ("PORT_8080_TCP_ADDR_X", "10.96.0.10"),
            ("", ""),
        ] {
            assert!(!is_service_link(name, value), "{name}={value}");
        }
    }
}
