//! The machine: its clock and randomness, which no other code reads, its name and its users. It
//! returns no random bytes that were used before.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kinora_contract::{Clock, EntropySource, NoEntropy, RELEASED_MS, SteadyMs, Stopwatch, UnixMs};

use crate::failure::Failure;

/// Maximum length of a recorded user name.
const ACTOR_CHARS_MAX: usize = 128;

/// The machine's clocks. Steady time belongs to the process, and stands still while the machine
/// sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where wall time comes in"
    )]
    fn now_ms(&self) -> UnixMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where steady time comes in"
    )]
    fn steady_ms(&self) -> SteadyMs {
        // An `Instant` has no epoch, so steady time counts from the first reading. On Linux it is
        // CLOCK_MONOTONIC, which does not advance while the machine is suspended.
        static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(FIRST.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Keeps other processes of the same user from reading this one's memory and its initial
/// environment, which holds secrets. A process with `CAP_SYS_PTRACE`, such as root's, still can.
/// The system writes no core dumps of this process any more.
pub(crate) fn forbid_tracing() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Linux always can; there is no log yet.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// The user on this machine who runs this process, for the log of key changes.
pub(crate) fn current_actor() -> kinora_store::KeyActor {
    let id = rustix::process::getuid().as_raw();
    // Parsed here, since `getpwuid_r` needs unsafe code, which this crate forbids. Users from a
    // directory service are recorded by their number.
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_name(&users, id).unwrap_or_else(|| format!("uid {id}"));
    // With sudo, record the original user.
    let user = match std::env::var("SUDO_USER") {
        Ok(own) if !own.is_empty() && own != user => format!("{own} as {user}"),
        _ => user,
    };
    kinora_store::KeyActor {
        user: user.chars().take(ACTOR_CHARS_MAX).collect(),
        host: host_name(),
    }
}

/// The name of the user with this id, from lines of `passwd(5)`.
fn user_name(users: &str, id: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number = fields.nth(1)?;
        (number.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// Starts measuring with the machine's clock.
pub(crate) fn stopwatch() -> Stopwatch {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Stopwatch::start(&clock)
}

/// A warning if the machine's clock shows a time before the release of this program.
pub(crate) fn clock_warning() -> Option<&'static str> {
    let wrong = SystemClock.now_ms() < RELEASED_MS;
    wrong.then_some(
        "the clock stands before the release of this version; set it, for example by chrony or \
         systemd-timesyncd",
    )
}

/// The machine's random generator, read a page at a time: a system call per task would cost more
/// than making the id.
#[derive(Debug, Default)]
pub(crate) struct SystemEntropy(Mutex<Vec<u8>>);

impl SystemEntropy {
    const PAGE: usize = 4096;
}

impl EntropySource for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if page.len() < bytes.len() {
            page.resize(bytes.len().max(Self::PAGE), 0);
            getrandom::fill(&mut page).map_err(|error| {
                // Never hand out half-filled bytes.
                page.clear();
                NoEntropy(error.to_string())
            })?;
        }
        // Taken from the end and cut off there: no byte is handed out twice, and the rest of the
        // page need not move.
        let rest = page.len() - bytes.len();
        bytes.copy_from_slice(&page[rest..]);
        page.truncate(rest);
        Ok(())
    }
}

/// Twelve random letters, which name a key or a webhook.
pub(crate) fn random_letters() -> Result<String, Failure> {
    // Slightly uneven, as 256 is no multiple of 26. A name only has to be distinct; it is no secret.
    let letters = random::<12>()?.map(|byte| char::from(b'a' + byte % 26));
    Ok(letters.iter().collect())
}

/// Random bytes of the machine.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    SystemEntropy::default()
        .fill(&mut bytes)
        .map_err(|error| Failure::because("The system returned no random bytes", error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_is_given_out_twice() {
        let entropy = SystemEntropy::default();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let mut bytes = [0; 16];
            entropy.fill(&mut bytes).unwrap();
            assert!(seen.insert(bytes));
        }
        let mut large = vec![0; 10_000];
        entropy.fill(&mut large).unwrap();
        assert!(large.iter().any(|byte| *byte != 0));
    }
}
