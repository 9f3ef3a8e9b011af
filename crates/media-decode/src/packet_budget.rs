//! Limits the number of packets of a sound, and the share of damaged ones.

use crate::DecodeCause;

/// Maximum number of packets read: about the longest sound in the shortest packets.
const PACKETS_MAX: usize = 100_000;

/// Counts of good and damaged packets.
#[derive(Default)]
pub(crate) struct PacketBudget {
    good: usize,
    bad: usize,
}

impl PacketBudget {
    /// Counts a packet, up to [`PACKETS_MAX`].
    pub(crate) fn count(&mut self, good: bool) -> Result<(), DecodeCause> {
        if good {
            self.good += 1;
        } else {
            self.bad += 1;
        }
        if self.good + self.bad > PACKETS_MAX {
            return Err("too many packets".into());
        }
        Ok(())
    }

    /// Refuses sound with more damaged than good packets.
    pub(crate) fn check_damage(&self) -> Result<(), DecodeCause> {
        if self.bad > self.good {
            return Err(format!("{} of {} packets", self.bad, self.bad + self.good).into());
        }
        Ok(())
    }
}
