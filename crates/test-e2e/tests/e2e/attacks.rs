//! One hostile client at each bound, and a polite one beside it. Each attack runs at a small scale in
//! `./test` and at the scale of a real one in `./soak attacks`, with the same assertions.

mod children;
mod commands;
mod connections;
mod disk;
mod dns;
mod memory;
mod slots;
mod third_parties;
mod unread;
mod uploads;

/// `full` in `./soak attacks`, `small` everywhere else.
pub(crate) fn scale(small: usize, full: usize) -> usize {
    match std::env::var_os("KINORA_ATTACKS_FULL") {
        Some(_) => full,
        None => small,
    }
}
