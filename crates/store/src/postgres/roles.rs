//! The interface, one file for each audience.

mod allowances;
mod chores;
mod keys;
mod operations;
mod secrets;
mod tasks;
pub(super) mod webhooks;
mod work;
mod workers;
