//! What a power loss takes.

/// What a power loss takes of whatever is not certain.
pub enum Loss<'c> {
    /// Nothing: the disk as the service sees it.
    Nothing,
    /// All of it.
    All,
    /// Each change or not, or a part of it, by chance: gives a number below its argument.
    Some(&'c mut dyn FnMut(u64) -> u64),
}
