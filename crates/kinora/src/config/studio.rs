//! The section `[studio]`: the web page.

use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Studio {
    pub(crate) enabled: bool,
}
