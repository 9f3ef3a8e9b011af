//! The urgency of a task among those of its own project. It has no effect between projects.

use serde::{Deserialize, Serialize};

/// A class among the waiting tasks of one project; `high` tasks start first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
// Tasks start in the order of these variants.
pub enum Priority {
    /// Before the project's other tasks.
    High,
    /// The default.
    #[default]
    Normal,
    /// After the project's other tasks.
    Low,
}

impl Priority {
    /// Every class, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Its name in requests and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// Every name, for a refusal.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The priority with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its number in a database; tasks with smaller numbers start first.
    #[must_use]
    pub const fn rank(self) -> i16 {
        match self {
            Self::High => -1,
            Self::Normal => 0,
            Self::Low => 1,
        }
    }

    /// The priority with this number.
    #[must_use]
    pub fn from_rank(rank: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.rank() == rank)
    }

    /// Whether this is the default.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_one_class_each_in_the_same_order() {
        for one in Priority::ALL {
            assert_eq!(Priority::from_name(one.name()), Some(one));
            assert_eq!(Priority::from_rank(one.rank()), Some(one));
            assert_eq!(serde_json::to_value(one).unwrap(), one.name());
            for other in Priority::ALL {
                assert_eq!(one.cmp(&other), one.rank().cmp(&other.rank()));
            }
        }
        assert_eq!(Priority::from_name("High"), None);
        assert_eq!(Priority::from_rank(2), None);
        assert!(Priority::default().is_normal());
    }
}
