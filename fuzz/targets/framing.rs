//! The bytes of a connection: wherever reads cut them, the scanner of framing sees the same requests and
//! the same fault.
#![no_main]

use libfuzzer_sys::fuzz_target;

use framing::Framing;

// The scanner is private to the listener and needs nothing of it: built alone, a target needs neither
// SQLite nor TLS.
#[path = "../../crates/api/src/listen/framing.rs"]
mod framing;

/// Follows pieces of one connection up to a fault.
fn followed<'b>(pieces: impl Iterator<Item = &'b [u8]>) -> Framing {
    let mut framing = Framing::default();
    for piece in pieces {
        let found = framing.follow(piece);
        assert_eq!(found.is_some(), framing.fault().is_some());
        if let Some(at) = found {
            assert!(at < piece.len(), "{at} of {}", piece.len());
            break;
        }
    }
    framing
}

/// Without a fault all that is remembered must be equal: it decides about what comes next.
fn assert_same(whole: &Framing, cut: &Framing) {
    assert_eq!(whole.fault(), cut.fault());
    if whole.fault().is_none() {
        assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
    }
}

fuzz_target!(|input: &[u8]| {
    // The first bytes say, over and over, how long the next piece is.
    let Some((lengths, bytes)) = input.split_first_chunk::<4>() else {
        return;
    };
    let whole = followed(std::iter::once(bytes));
    assert_same(&whole, &followed(bytes.chunks(1)));
    let mut rest = bytes;
    let pieces = lengths.iter().cycle().map_while(|length| {
        let (piece, later) = rest.split_at(rest.len().min(1 + usize::from(*length)));
        rest = later;
        (!piece.is_empty()).then_some(piece)
    });
    assert_same(&whole, &followed(pieces));
    if let Some(fault) = whole.fault() {
        let (status, _) = fault.refusal();
        assert!(status.starts_with("400 ") || status.starts_with("414 "), "{status}");
    }
});
