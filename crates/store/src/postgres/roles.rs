//! The interface, one file for each audience.

mod chores;
mod keys;
mod tasks;
mod work;
