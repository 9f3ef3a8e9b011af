//! Limits on the network of processes.

/// Limits TCP of this thread, and of threads and processes that it starts from now on, to listening on one port: they connect to
/// nothing. Irreversible. Returns what this system lacks for that.
#[cfg(target_os = "linux")]
pub fn allow_only_tcp_listener(port: u16) -> Option<String> {
    use landlock::RulesetStatus;

    match restrict(port) {
        Ok(RulesetStatus::FullyEnforced) => None,
        Ok(_) => Some("Landlock of this kernel cannot limit TCP (it needs Linux 6.7)".to_owned()),
        Err(error) => Some(format!("Landlock: {error}")),
    }
}

#[cfg(target_os = "linux")]
fn restrict(port: u16) -> Result<landlock::RulesetStatus, landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessNet, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
        RulesetCreatedAttr,
    };

    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(ABI::V4))?
        .create()?
        .add_rule(NetPort::new(port, AccessNet::BindTcp))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Unsupported on this system: nothing is limited.
#[cfg(not(target_os = "linux"))]
pub fn allow_only_tcp_listener(_: u16) -> Option<String> {
    Some("networks are limited on Linux only".to_owned())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    #[test]
    fn one_port_to_listen_on_is_left_to_a_thread_and_every_port_to_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = listener.local_addr().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = free.local_addr().unwrap();
        drop(free);
        let confined = thread::spawn(move || {
            let lacking = allow_only_tcp_listener(open.port());
            let own = TcpListener::bind(open);
            let tries = [
                TcpStream::connect(open).is_ok(),
                TcpStream::connect(closed).is_ok(),
                TcpListener::bind("127.0.0.1:0").is_ok(),
            ];
            (lacking, own.is_ok(), tries)
        });
        let (lacking, own, tries) = confined.join().unwrap();
        let is_limited = lacking.is_none();
        assert!(own);
        assert_eq!(tries, [!is_limited; 3], "{lacking:?}");
        assert!(TcpStream::connect(closed).is_ok());
    }
}
