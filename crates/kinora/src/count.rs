//! Counts with nouns, for people.

/// "1 task", "2 tasks": the plural of `noun` must end in a plain s.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_no_plural() {
        let counted = [0_u64, 1, 2].map(|number| count(number, "key"));
        assert_eq!(counted, ["0 keys", "1 key", "2 keys"]);
    }
}
