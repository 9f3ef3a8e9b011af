//! Enums of choices that have the same names in settings and here.

/// Each variant is its identifier, its name and its documentation.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal, $label:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $label] #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// The name in settings.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}
pub(crate) use named;
