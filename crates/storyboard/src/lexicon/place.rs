//! The places that a scene can have.

/// Where a scene plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Place {
    Sea,
    Mountains,
    Forest,
    Desert,
    City,
    Hills,
    Lake,
    Space,
    Underwater,
    Room,
    /// Things on a table, seen close.
    Table,
    Sky,
    Abstract,
}

impl Place {
    /// Whether somebody can stand there.
    pub(in super::super) fn has_ground(self) -> bool {
        !matches!(self, Self::Space | Self::Sky | Self::Underwater)
    }
}
