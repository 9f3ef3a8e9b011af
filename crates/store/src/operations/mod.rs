//! The changes of the store, written once for all databases: which rows a change needs
//! ([`crate::backend::StoreOperation::needs`]), and how it changes records by the transitions of
//! [`kinora_contract::lifecycle`] and the turns of [`crate::queue`]. An operation knows no database; it
//! speaks to a [`crate::backend::StoreTransaction`].

pub(crate) mod cancel;
pub(crate) mod chores;
pub(crate) mod claim;
pub(crate) mod submit;
pub(crate) mod sweep;
pub(crate) mod uploads;
