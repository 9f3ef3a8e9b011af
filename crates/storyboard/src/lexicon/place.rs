//! The places that a scene can have.

/// The location of a scene.
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
    /// Things on a table, in close-up.
    Table,
    Sky,
    Abstract,
}

impl Place {
    /// Whether figures can stand on its ground.
    pub(in super::super) fn has_ground(self) -> bool {
        !matches!(self, Self::Space | Self::Sky | Self::Underwater)
    }
}
