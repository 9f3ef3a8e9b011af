//! The statements of a connection that have names, by their texts.

use std::collections::HashMap;

/// A statement gets its name when it is sent for the second time.
const USES_MIN: u32 = 2;
/// It is planned anew after so many uses, since the tables have changed meanwhile.
const USES_MAX: u32 = 1_000;
/// Texts that a connection knows. What it forgets costs it a plan.
const TEXTS_MAX: usize = 128;

/// How a statement is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use<N> {
    Unnamed,
    /// It gets a name now.
    New,
    Named(N),
}

/// The statements that a connection was sent. Names that are dropped here are free again at the server.
#[derive(Debug)]
pub(super) struct Names<N>(HashMap<String, Known<N>>);

#[derive(Debug)]
struct Known<N> {
    uses: u32,
    name: Option<N>,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<N: Clone> Names<N> {
    /// Notes a use of this text.
    pub(super) fn uses(&mut self, sql: &str) -> Use<N> {
        let Some(known) = self.0.get_mut(sql) else {
            self.make_room();
            let first = Known {
                uses: 1,
                name: None,
            };
            self.0.insert(sql.to_owned(), first);
            return Use::Unnamed;
        };
        known.uses += 1;
        if known.uses > USES_MAX {
            *known = Known {
                uses: USES_MIN,
                name: None,
            };
        }
        known.name.clone().map_or(Use::New, Use::Named)
    }

    pub(super) fn keep(&mut self, sql: &str, name: N) {
        if let Some(known) = self.0.get_mut(sql) {
            known.name = Some(name);
        }
    }

    /// Those without a name go first.
    fn make_room(&mut self) {
        if self.0.len() >= TEXTS_MAX {
            self.0.retain(|_, known| known.name.is_some());
        }
        if self.0.len() >= TEXTS_MAX {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_name_from_its_second_use_on_and_a_new_one_now_and_then() {
        let mut names = Names::default();
        assert_eq!(names.uses("one"), Use::Unnamed);
        let mut given = 0;
        for _ in 1..2 * USES_MAX {
            if names.uses("one") == Use::New {
                given += 1;
                names.keep("one", given);
            } else {
                assert_eq!(names.uses("one"), Use::Named(given));
            }
        }
        assert!((2..=6).contains(&given), "{given}");
    }

    #[test]
    fn p08_a_connection_knows_a_bounded_number_of_texts() {
        let mut names = Names::default();
        for number in 0..10_000 {
            let sql = number.to_string();
            names.uses(&sql);
            if number % 3 == 0 && names.uses(&sql) == Use::New {
                names.keep(&sql, number);
            }
            assert!(names.0.len() <= TEXTS_MAX);
        }
        // Statements used once do not evict statements used often.
        let mut names = Names::default();
        names.uses("often");
        names.uses("often");
        names.keep("often", 1);
        (0..1_000).for_each(|number| _ = names.uses(&number.to_string()));
        assert_eq!(names.uses("often"), Use::Named(1));
    }
}
