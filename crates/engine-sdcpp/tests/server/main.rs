//! A model in a server, from prompt to frames and sound: `stand_in` with a program of the same
//! interface, which needs no weights; `weights` with the real server, which `KINORA_SD_SERVER` names,
//! and the weights of the folder `KINORA_SDCPP_WEIGHTS`, as the example `random_weights` writes them.

#![allow(clippy::disallowed_methods, reason = "tests measure in real time")]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod given;
mod hosted;
mod stand_in;
mod support;
mod weights;
