//! The interface, one file for each audience.

mod allowances;
mod chores;
mod keys;
mod secrets;
mod tasks;
mod work;
mod workers;
