//! The changes of the store, one file each, written once for all databases: what a change needs
//! ([`crate::backend::Operation::needs`]), and how it changes the records by the transitions of
//! [`kinora_contract::lifecycle`].

pub(crate) mod cancel;
pub(crate) mod chores;
pub(crate) mod claim;
pub(crate) mod delete;
pub(crate) mod deliveries;
pub(crate) mod fetch;
pub(crate) mod lease;
pub(crate) mod postpone;
pub(crate) mod references;
pub(crate) mod submit;
pub(crate) mod sweep;
